"""Sleep, wake and shutdown as the system reports them, and keeping the computer awake."""
