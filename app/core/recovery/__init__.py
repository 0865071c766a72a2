"""Decides what follows a failure: whose fault it was, what is tried next, which machines are left out. Pure."""
