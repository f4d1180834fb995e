"""Tables: read from users, and written for them."""
