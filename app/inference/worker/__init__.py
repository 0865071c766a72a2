"""Runs worker processes on this machine: starts and limits them, sends them orders, and measures their speed."""
