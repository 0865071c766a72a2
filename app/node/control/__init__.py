"""The loopback control API: routes by theme, and what every request must show."""
