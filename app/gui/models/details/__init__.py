"""The details of the selected model: whether it fits, its speed forecast, and the settings for loading it."""
