"""The installer for Windows, built on Linux: engine, Python, packages, starters and the setup program."""
