"""The live map of the household, with cards for machines, lines for links, and moving dots for traffic."""
