"""Decides what follows a failure: whose fault it was, what is tried next, who is left out. Pure."""
