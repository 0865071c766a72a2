"""Readers of untrusted content, which run in confined processes: formulas in answers and attached documents."""
