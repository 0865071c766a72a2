"""Other OpenAI-compatible servers to which whole requests may be sent."""
