"""Graph and moments to weights, expected rewards and confidence bounds."""
