"""Model downloads, copies between machines of the household, and the models folder."""
