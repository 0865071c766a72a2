"""Broken model files against running nodes: `python -m tests.broken`."""
