"""A stage as the host drives it and as a lender serves it: frames, order, channels."""
