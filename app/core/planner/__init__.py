"""Plans a placement: which machine holds which layers, how fast that will be, what would help. Pure."""
