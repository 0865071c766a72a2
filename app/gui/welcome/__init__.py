"""The first run, in which the user names this computer, chooses its role, and can pair another computer."""
