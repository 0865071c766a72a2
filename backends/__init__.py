"""Engines behind one contract. Knows nothing of the app; runs as `python -m backends`."""
