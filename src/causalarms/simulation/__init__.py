"""Many runs with known truth."""
