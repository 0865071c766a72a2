"""Chats as files: our JSON, Markdown, HTML, PDF; and read back in."""
