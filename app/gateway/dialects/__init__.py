"""The dialects of the API. Each parses its requests into an ApiRequest and formats the answers."""
