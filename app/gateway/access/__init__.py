"""Access control for the API: keys, origins, token budgets, compressed bodies and slow clients."""
