"""The window's connection to the node: requests over its loopback API, and its state."""
