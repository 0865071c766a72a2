"""Sensors for the owner's use of this computer: idle time, power, running programs and load."""
