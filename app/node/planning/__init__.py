"""The inputs of plans: speeds, sizes, forecasts and their errors."""
