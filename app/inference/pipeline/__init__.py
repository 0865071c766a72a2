"""A pipeline of stages: requests, sequences, micro-batches, recovery, answers."""
