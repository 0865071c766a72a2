"""Answers of the node as text for a terminal: tables, sentences, small pictures."""
