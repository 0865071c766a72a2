"""JSON schemas as grammars, and JSON text that is not complete yet. Pure."""
