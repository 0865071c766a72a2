"""This machine's copy of the signed household log, and the pairing of new members."""
