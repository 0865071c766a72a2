"""Links to machines: dialed, accepted, kept alive, and the channels and requests beside them."""
