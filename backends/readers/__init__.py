"""Readers of untrusted content: formulas and documents. Each runs in a confined process of its own."""
