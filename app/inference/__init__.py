"""The inference runtime, which runs models on one or several machines, as the host or as a lender of layers."""
