"""The decisions after a failure: its cause, the next attempt, and the machines to avoid."""
