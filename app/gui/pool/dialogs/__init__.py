"""Dialogs about machines: added, joined, renamed, removed, left."""
