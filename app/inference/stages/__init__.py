"""A stage as the host drives it and a lender serves it: frames, their order, channels."""
