"""The window's connection to the node, which sends API requests and maintains a copy of the node's state."""
