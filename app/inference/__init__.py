"""The inference runtime, which runs models on one or several machines, both as the host and as a lender of layers."""
