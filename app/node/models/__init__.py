"""Loads and unloads the models of this host, generates answers, and forwards requests to hosts that have others."""
