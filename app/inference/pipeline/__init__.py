"""Pipelines of stages that serve requests: scheduling, batching, recovery, and the conversion of tokens into answers.
"""
