"""Stores of keys, tokens and passphrases: the system's keyring, or a private file."""
