"""The measurements run by `python -m bench PART`, one per file."""
