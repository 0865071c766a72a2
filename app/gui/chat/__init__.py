"""The Chat page, with the list of chats, the conversation, and the history in which chats are stored."""
