"""The Guide: the text, the training and the scoring of the small model that comes with Poolhouse."""
