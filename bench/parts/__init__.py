"""The measurements that `python -m bench PART` makes, one per file."""
