"""Who may ask: keys, origins, budgets, slow clients."""
