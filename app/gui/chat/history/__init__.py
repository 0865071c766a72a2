"""Storage, encryption and search of the user's chats, all in a single history file."""
