"""Decides what is computed next: sequences, requests, speculative tokens, replicas. Pure."""
