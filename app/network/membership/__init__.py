"""The household's signed log as this machine knows it, stored on disk."""
