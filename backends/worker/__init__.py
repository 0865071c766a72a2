"""The worker process: its runs of layers, its answers to frames and orders, and its confinement."""
