"""Chat templates, rendered in a sandbox, and the formats of tool calls and thoughts detected by probing them."""
