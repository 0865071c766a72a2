"""The servers of the API: on loopback, on the LAN, and for guests of the household."""
