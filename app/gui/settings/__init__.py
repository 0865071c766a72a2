"""The Settings page, with groups of settings and a search across all of them."""
