"""The messages of a conversation: showing and editing."""
