"""The families that the PyTorch engine computes, one file each; `registry` finds them by their GGUF architecture."""
