"""The Models page: local and downloadable models, whether they fit, and loading them."""
