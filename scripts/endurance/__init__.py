"""The real window in use for half an hour over real nodes, and what it costs: `make endure`."""
