"""Loads and unloads the models of this host, generates answers, and forwards guests' requests to hosts."""
