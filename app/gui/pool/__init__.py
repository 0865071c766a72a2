"""The Pool page: the machines of the household, the links between them, and the loaded models."""
