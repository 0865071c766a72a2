"""Placements: how the stages of a model are opened on machines, kept running, replaced after a failure, and closed."""
