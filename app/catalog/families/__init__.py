"""Model families: where each may be cut, what each cut must hold, and what is proved."""
