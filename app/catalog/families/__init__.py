"""Describes model families: where each may be cut, what its stages must contain, and which families are proved."""
