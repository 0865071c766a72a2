"""Pictures of the window, made over real nodes: `make screenshots`."""
