"""The local computer: the places of its files, its hardware, and its owner's choices."""
