"""The first minutes: a name, what this computer has, what it is for, another computer."""
