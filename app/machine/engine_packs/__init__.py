"""Engine packs: libraries for graphics cards that are installed, verified, tested and switched apart from Poolhouse."""
