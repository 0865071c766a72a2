"""Texts that a base model continues in place, which have no questions and answers."""
