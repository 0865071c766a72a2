"""Verification of lenders: their numbers are computed again here, and machines with wrong numbers are quarantined."""
