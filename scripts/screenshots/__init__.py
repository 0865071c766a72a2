"""Screenshots of the real window with real nodes: `make screenshots`."""
