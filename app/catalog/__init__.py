"""Models and their files: read, checked, cut into stages, fetched by content hash."""
