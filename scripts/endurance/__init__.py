"""Half an hour of use of the real window over real nodes, and its cost: `make endure`."""
