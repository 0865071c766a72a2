"""Speculation: where guesses of the next tokens come from, and how many of them are worth computing."""
