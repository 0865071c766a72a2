"""The worker process: its stages, its answers to frames and orders, and its confinement."""
