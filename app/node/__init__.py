"""The process that runs on each machine, owns all of its state and serves the loopback API."""
