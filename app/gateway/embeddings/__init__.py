"""Vectors and reranking, in each dialect."""
