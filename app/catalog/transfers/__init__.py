"""Downloads, copies and moves model files, verifying each and resuming it after a restart."""
