"""The web chat for phones and tablets: devices with tokens of their own, one-time codes, and the page."""
