"""Planning: places a model on machines, and compares forecasts with the results."""
