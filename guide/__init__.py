"""The Guide, the small model that comes with Poolhouse: its training text, training, export and scoring."""
