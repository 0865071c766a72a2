"""The household, its models and decisions. Pure: no I/O, no clock, no chance, no threads, no Qt."""
