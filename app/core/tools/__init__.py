"""Tool calls and reasoning: read from a model's output, and written into its prompts. Pure."""
