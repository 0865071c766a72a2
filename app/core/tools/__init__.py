"""Tool calls and reasoning: parsing them from a model's output, and writing calls into its prompts."""
