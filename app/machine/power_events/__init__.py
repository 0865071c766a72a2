"""Sleep, wake and shutdown events from the operating system, and a way to keep the computer awake."""
