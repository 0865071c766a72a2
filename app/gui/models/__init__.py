"""The Models page, which lists local and downloadable models, tells whether they fit, and loads them."""
