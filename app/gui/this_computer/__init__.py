"""The page This computer: what this machine lends, when, and its hardware."""
