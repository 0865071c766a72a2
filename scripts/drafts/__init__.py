"""Trains a draft model: a small model that proposes tokens for a large one of the same vocabulary."""
