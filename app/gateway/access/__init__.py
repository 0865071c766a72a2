"""Access control for the API: keys, origins, budgets, slow clients."""
