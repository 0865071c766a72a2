"""Downloads and copies of model files: what is on the disk, verified, resumed, moved."""
