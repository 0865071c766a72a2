"""The API for other programs: OpenAI, Anthropic and Ollama dialects, with keys and limits."""
