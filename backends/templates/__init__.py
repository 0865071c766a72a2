"""Chat templates, rendered in a sandbox, and the formats of calls and thoughts found by probing them."""
