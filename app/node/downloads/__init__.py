"""Models on their way here, where they come from, and the folder they lie in."""
