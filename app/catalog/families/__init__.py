"""Model families: where each may be cut, what each stage must contain, and what is proved."""
