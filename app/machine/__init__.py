"""The local computer: the paths of its files, its hardware, and its owner's activity and settings."""
