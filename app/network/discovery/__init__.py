"""Finds machines: announcements, what is heard of others, and where members may be."""
