"""The list of chats, with search, folders, in-place renaming and drag and drop."""
