"""The chats of this person in one file: kept, encrypted, searched, rescued."""
