"""Verification of lenders: recomputes samples of their work, and quarantines faulty machines."""
