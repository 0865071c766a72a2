"""Running a model over the pool, seen from the host and from the lender."""
