"""The Models page, which lists local and downloadable models, shows whether they fit, and loads them."""
