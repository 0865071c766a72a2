"""Access to this computer: its hardware, power events and file paths, and its owner's settings and secrets."""
