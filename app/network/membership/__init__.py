"""The household's signed log as this machine knows it, kept on the disk."""
