"""The first run: naming this computer, its hardware, its role, and pairing with another computer."""
