"""Pipelines of stages that serve requests: scheduling, batching, recovery, and conversion of tokens into answers."""
