"""Inference engines behind one contract, independent of the app. Run as `python -m backends`."""
