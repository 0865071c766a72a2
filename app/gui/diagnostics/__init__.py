"""Troubleshooting: the most likely cause of a problem with its fix, and a support bundle to send to a helper."""
