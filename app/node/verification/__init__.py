"""Verification of lenders: samples of their work are recomputed here, and faulty machines are quarantined."""
