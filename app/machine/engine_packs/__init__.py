"""Engine packs: libraries for graphics cards that are installed, tested and switched separately from Poolhouse."""
