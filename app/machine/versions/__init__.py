"""The versions of Poolhouse that updates put beside the installed copy: archives of layers, the store, and restarting.

app/launcher.py chooses which of them starts."""
