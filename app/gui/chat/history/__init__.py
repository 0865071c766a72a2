"""The chats of this person in one file: stored, encrypted, searched."""
