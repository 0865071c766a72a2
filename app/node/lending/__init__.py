"""The lender's side: the owner's rules, requests to open stages, uploads of layers, and sleep."""
