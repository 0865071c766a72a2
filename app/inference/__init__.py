"""Runs models on one machine or on several, as the host of a pipeline and as a lender of layers."""
