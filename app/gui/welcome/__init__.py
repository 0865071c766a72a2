"""The first run: naming this computer, a look at its hardware, its role, and pairing with another computer."""
