"""Decides what is computed next: sequences, requests, speculative tokens, recurrent states. Pure."""
