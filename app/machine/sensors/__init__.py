"""Sensors of what this computer is doing for its owner: idle time, power, programs and load."""
