"""Power events: sleep, waking and shutdown as the system reports them; and keeping the computer awake."""
