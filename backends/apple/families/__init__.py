"""The model families that the MLX engine supports, one file each. `registry` maps GGUF architectures to them."""
