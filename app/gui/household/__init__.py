"""The Pool page: the map of the machines and their links, the same as a table, pairing."""
