"""Benchmarks that compare Poolhouse with the whole model on one machine and with llama.cpp RPC: `python -m bench`."""
