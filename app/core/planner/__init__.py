"""The planner, which decides which machine holds which layers, forecasts the model's speed and suggests improvements.
"""
