"""Chatting: the history of this person, the list of chats, the conversation."""
