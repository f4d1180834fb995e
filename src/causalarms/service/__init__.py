"""`causalarms serve`: one study on the network, as an API and a live page; and its client."""
