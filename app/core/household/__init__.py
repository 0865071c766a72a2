"""The machines of the household: what is known about them, the signed membership log, pairing, and links."""
