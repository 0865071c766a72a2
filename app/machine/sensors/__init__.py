"""Reads what this computer does for its owner now: idle time, power, programs, load."""
