"""Make a tiny random model of each family, and record the results of transformers for it."""
