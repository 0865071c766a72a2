"""Loads and unloads the models of this host, generates answers, and forwards a guest's requests to hosts."""
