"""Grammars that answers keep to, followed in processes of their own."""
