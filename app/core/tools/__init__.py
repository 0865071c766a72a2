"""Calls of tools and thoughts: read from what a model writes, and told to it again. Pure."""
