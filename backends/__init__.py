"""Inference engines with a common interface, independent of the app. Run with `python -m backends`."""
