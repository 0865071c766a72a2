"""Connects the host of a pipeline with its stages: the host's client, the lender's server, and their links."""
