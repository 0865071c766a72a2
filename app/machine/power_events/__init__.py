"""The system says that this computer sleeps, wakes or ends; and it is kept awake."""
