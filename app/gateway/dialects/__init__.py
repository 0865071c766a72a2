"""Dialects of the API: each reads its requests into one vocabulary, and writes answers in its own shape."""
