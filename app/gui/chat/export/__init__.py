"""Exports chats as JSON, Markdown, HTML or PDF, and imports them from JSON."""
