"""The loopback control API: its routes by theme, and the checks that every request must pass."""
