"""The HTTP API for other programs, in the dialects of OpenAI, Anthropic and Ollama, with keys and limits."""
