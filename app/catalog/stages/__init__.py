"""Handles stage files: cuts them out of models, transfers them by hash, stores them, and generates synthetic ones."""
