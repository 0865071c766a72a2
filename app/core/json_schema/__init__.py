"""JSON schemas as grammars, and JSON text that is still incomplete. Pure."""
