"""The Chat page: the list of chats, the conversation, and the history in which chats are stored."""
