"""The household, its models and decisions. Pure: no I/O, no clock, no randomness, no threads, no Qt."""
