"""Downloads, copies and moves model files. Each file is verified, and resumed after a restart."""
