"""Downloads of models, copies between machines of the household, and the folder that contains the models."""
