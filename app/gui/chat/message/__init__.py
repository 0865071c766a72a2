"""The messages of a conversation, as they are shown and edited."""
