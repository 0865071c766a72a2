"""The Chat page: the history, the list of chats, the conversation."""
