"""Small models, made-up households, networks and screens, shared by tests, benchmarks and scripts.

Nothing here needs more than the app itself: `make bench` runs right after `make setup`.
"""
