"""Starts Poolhouse at sign-in, by each system's own means."""
