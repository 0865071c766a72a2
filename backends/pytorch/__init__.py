"""The PyTorch engine: a stage on torch, from the same GGUF files, with a file for each family of models.

torch is not part of the base installation. `library.load` finds it before any other module here is imported.
"""
