"""The engine process of a machine: owns all state, serves the loopback API."""
