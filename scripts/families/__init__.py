"""Makes a tiny random model of each family, and writes down what transformers says with it."""
