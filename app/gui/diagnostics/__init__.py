"""Troubleshooting: the likeliest cause of a problem with its fix, and a support bundle for the person who helps."""
