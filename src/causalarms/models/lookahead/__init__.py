"""What a round is worth: what would be decided after it, over draws of what is true."""
