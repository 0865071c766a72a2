"""Creates a tiny random model of each family, and records the reference results of transformers for it."""
