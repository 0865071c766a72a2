"""Accesses the model hub: searches it, lists repositories, and downloads files."""
