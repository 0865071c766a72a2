"""The packers for Linux: the Debian package and the AppImage."""
