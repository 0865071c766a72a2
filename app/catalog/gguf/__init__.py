"""Reads GGUF files: bytes, limits, header, and what a header says of its model."""
