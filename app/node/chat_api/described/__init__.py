"""What each API answers, for the served description; tests hold real answers against it."""
