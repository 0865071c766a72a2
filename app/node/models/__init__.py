"""The models of this host: loading them, generating answers, and comparing these with the forecasts."""
