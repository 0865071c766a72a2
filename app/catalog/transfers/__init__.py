"""Downloads, copies and moves of model files: recorded on the disk, verified and resumable."""
