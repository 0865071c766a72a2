"""Inference over the pool, on the host's and on the lender's side."""
