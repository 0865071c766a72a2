"""Troubleshooting: the likeliest cause of a problem and its fix, and a support bundle to send to whoever helps."""
