"""Measures links: round trips, throughput, and each path to a machine."""
