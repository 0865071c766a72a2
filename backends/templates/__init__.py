"""Chat templates: strangers' programs in a sandbox, and what they tell of a model's habits."""
