"""Views that show data from the node on a terminal as tables, sentences and small diagrams."""
