"""The engine process of a machine, which owns all state and serves the loopback API."""
