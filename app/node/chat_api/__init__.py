"""The Chat API: what other programs of this computer use. A surface of its own, with keys of its own."""
