"""Screenshots of the window over real nodes: `make screenshots`."""
