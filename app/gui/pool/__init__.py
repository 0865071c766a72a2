"""The Pool page, with the machines of the household, the links between them, and the loaded models."""
