"""The domain logic: the household, its models, and the decisions about them.

Everything in this package is pure: it uses no I/O, clock, randomness, threads or Qt.
"""
