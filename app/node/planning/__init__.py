"""Planning: places a model on machines according to their speeds, memory and links, and compares forecasts with
results."""
