"""Pairs two machines: a typed code, proved by SPAKE2, over a window that closes again."""
