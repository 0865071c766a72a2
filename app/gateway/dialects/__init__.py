"""Dialects of the API. Each parses its requests into an ApiRequest, and formats answers in its own way."""
