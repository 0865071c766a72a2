"""Handles model files: reads and checks them, cuts them into stages, and downloads and verifies them."""
