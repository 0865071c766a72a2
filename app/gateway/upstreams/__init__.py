"""Other OpenAI-compatible servers that whole requests may be sent to."""
