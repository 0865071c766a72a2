"""Lending: the owner's rules, the requests of hosts to open stages, uploads of layers, and sleep."""
