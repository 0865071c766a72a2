"""Downloads and copies of model files: their state on the disk, verified, resumed, moved."""
