"""Display and editing of the messages in a conversation."""
