"""The first run, in which the user names this computer, pairs others, and brings a first model into use."""
