"""The first minutes: a name, what this computer has, what it is for, and the first answer."""
