"""Texts that a base model continues in place, without questions and answers."""
