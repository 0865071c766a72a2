"""JSON schemas converted to grammars, and JSON text that is still incomplete."""
