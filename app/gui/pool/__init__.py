"""The Pool page: the machines and their links, and what is loaded on them."""
