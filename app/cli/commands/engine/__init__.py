"""The commands about engines and engine packs."""
