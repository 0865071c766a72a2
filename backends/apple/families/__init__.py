"""The families that the MLX engine computes, one file each; `registry` finds them by their GGUF architecture."""
