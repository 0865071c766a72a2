"""The details of the selected model: whether it fits, its forecast, and the settings for loading it."""
