"""The worker processes on this machine: their start, limits, orders and measured speed."""
