"""What plans are made from: speeds, sizes, forecasts and what they were wrong by."""
