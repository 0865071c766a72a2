"""The API's servers: on loopback, on the LAN, and for members of the household."""
