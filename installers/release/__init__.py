"""Publishing updates: the keys of the publisher, and the repository that computers get updates from."""
