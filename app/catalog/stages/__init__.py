"""Stage files: cut from a model, described by hash, received, kept, or made of random weights."""
