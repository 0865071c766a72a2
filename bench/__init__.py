"""Measures Poolhouse beside the whole model on one machine and llama.cpp's RPC: `python -m bench`."""
