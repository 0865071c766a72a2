"""Small models, simulated households, networks and screens, shared by tests, benchmarks and scripts.

They need nothing beyond the dependencies of the app, so `make bench` works right after `make setup`.
"""
