"""Views that show the node's answers on a terminal as tables, sentences and small diagrams."""
