"""The served description of all routes (OpenAPI 3.1)."""
