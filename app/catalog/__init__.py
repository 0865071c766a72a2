"""Models and their files: read, checked, cut into stages, and fetched by content hash."""
