"""The list of chats: search, folders, renaming, dragging."""
