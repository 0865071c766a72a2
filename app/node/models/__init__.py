"""The models of this host: which are loaded, loaded next, asked, and what came of answers."""
