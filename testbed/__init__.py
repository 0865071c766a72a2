"""Small models, made-up households, networks and screens that tests, benchmarks and scripts share.

Nothing here needs more than the app itself does: `make bench` runs right after `make setup`.
"""
