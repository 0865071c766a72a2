"""Where the API listens: loopback, the home network, and for guests of the household."""
