"""The chosen model: whether it fits, how it would run, how it is loaded."""
