"""The first run, in which the user names this computer, pairs other computers, and loads a first model."""
