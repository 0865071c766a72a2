"""The history: storage, encryption and search of the user's chats, all in a single file."""
