"""The live map of the household: cards, links and traffic."""
