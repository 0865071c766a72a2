"""The planner: which machine holds which layers, how fast the model will be, and what would improve it."""
