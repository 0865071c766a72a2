"""Downloads of models: their sources, and the folder that contains the models."""
