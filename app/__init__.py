"""Poolhouse: the computers of one household run one language model together."""

__version__ = "0.1.0"
