"""Networks as lists of layers, ready to be cut into stages."""
