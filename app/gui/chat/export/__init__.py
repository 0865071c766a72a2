"""Export of chats as JSON, Markdown, HTML or PDF, and import of JSON."""
