"""Planning: how a model is placed on the machines, from their speeds, memory and links, and how forecasts
turned out."""
