"""Tool calls and reasoning: how they are parsed from a model's output, and how calls are written into its prompts."""
