"""The versions of Poolhouse installed by updates: their archives, their storage, and restarting into them.

app/launcher.py chooses the version to start.
"""
