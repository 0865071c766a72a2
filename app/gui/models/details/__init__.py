"""The details of the selected model, including whether it fits, its forecast speed, and its load settings."""
