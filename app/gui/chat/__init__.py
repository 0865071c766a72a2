"""The Chat page: the list of chats, the conversation, and the history that stores them."""
