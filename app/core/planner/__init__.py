"""Plans a placement: which machine holds which layers, how fast it will be, and what would help. Pure."""
