"""The ports of the API: loopback, the home network, and for guests of the household."""
