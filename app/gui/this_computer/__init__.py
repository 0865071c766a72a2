"""The This computer page: what this machine lends and when, and its hardware."""
