"""Export of chats to JSON, Markdown, HTML or PDF, and import from JSON."""
