"""The engines of this node: its engine packs, and PyTorch or MLX."""
