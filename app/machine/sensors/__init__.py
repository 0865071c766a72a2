"""Sensors of how the owner is using this computer: idle time, power, running programs and load."""
