"""Loads and unloads the models of this host, generates answers, and forwards requests for other models to their
hosts.
"""
