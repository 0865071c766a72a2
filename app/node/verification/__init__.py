"""Lenders' numbers computed again here, and machines whose numbers were wrong."""
