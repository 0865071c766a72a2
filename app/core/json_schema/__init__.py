"""The conversion of JSON schemas to grammars, and the parsing of incomplete JSON."""
