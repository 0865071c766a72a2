"""Views of the node's answers for a terminal: tables, sentences and small pictures."""
