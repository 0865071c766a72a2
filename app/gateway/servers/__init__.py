"""The API's servers: on loopback, on the LAN, and for guests of the household."""
