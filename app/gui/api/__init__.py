"""The window's connection to the node: requests to its loopback API, and a copy of its state."""
