"""The planner, which decides which machine holds which layers, forecasts a model's speed and suggests improvements."""
