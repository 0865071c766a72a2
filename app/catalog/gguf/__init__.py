"""Reads GGUF files within hard limits, and describes the models in them."""
