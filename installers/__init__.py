"""The installers: one payload in layers, and the packers that make an installer of it for each system."""
