"""The page of models: what is here, what can be had, whether it fits, and loading it."""
