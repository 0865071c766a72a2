"""Decides whether a machine lends now: its owner's rules against its readings. Pure."""
