"""The payload: everything that is installed, in layers that are the same for all packers of one system."""
