"""Troubleshooting dialogs, which find the likely cause of a problem, offer a fix, and save a support bundle."""
