"""Downloads, copies and moves model files. Files are verified, and transfers resume after a restart."""
