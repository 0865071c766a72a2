"""Poolhouse for macOS: an app bundle in layers. Not verified: nobody has run it on a Mac yet (docs/installers.md)."""
