"""Updates of Poolhouse: signed releases are found, fetched, checked and installed beside the running version.

app/machine/versions keeps what was installed, and app/launcher.py starts it."""
