"""Handles stage files: cuts them out of models, transfers and stores them by hash, and generates synthetic ones."""
