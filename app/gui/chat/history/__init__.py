"""The user's chats in one file: storage, encryption and search."""
