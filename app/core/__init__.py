"""The domain logic: the household, its models, and every decision about them.

Everything in this package is pure: no I/O, no clock, no randomness, no threads, no Qt.
"""
