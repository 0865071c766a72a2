"""The decisions after a failure: what was at fault, what to try next, and which machines to avoid."""
