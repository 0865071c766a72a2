"""The model hub: its search, its listings, and its files as streams of bytes."""
