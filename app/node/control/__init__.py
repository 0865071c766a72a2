"""The loopback control API: its routes, grouped by subject, and the checks that every request must pass."""
