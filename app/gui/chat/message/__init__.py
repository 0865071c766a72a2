"""The messages of a conversation: display and editing."""
