"""Where keys, tokens and passphrases are kept: the system's keyring, or a private file."""
