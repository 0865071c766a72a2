"""The MLX engine, which runs a stage on Apple's graphics processors from the same GGUF files as llama.cpp.

Each model family has its own file.

MLX is not part of the base installation. `library.load` finds it before any other module here is imported. On Linux
its CPU build runs the same code, so the tests use that build.
"""
