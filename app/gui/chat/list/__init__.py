"""The list of chats at the side: search, folders, rename, drag."""
