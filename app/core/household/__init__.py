"""The machines of the household, the signed membership log, pairing, and links."""
