"""The models of this host: loading them, asking them, and comparing their answers with the forecasts."""
