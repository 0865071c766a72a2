"""Benchmarks of the pool in the window: run, compared, kept, shared."""
