"""The history: storage, encryption and search of the user's chats, which are in a single file."""
