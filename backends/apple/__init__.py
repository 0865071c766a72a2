"""The MLX engine: a stage on Apple's graphics processors, from the same GGUF files, with a file for each family.

MLX is not part of the base installation. `library.load` finds it before any other module here is imported. On Linux
its build for processors runs the same code, which is how it is tested.
"""
