"""Limits on what others may ask, open or send."""
