"""Stage files: cut from a model, described by hash, received, stored, or made of random weights."""
