"""Links to other machines: dialing, accepting and maintaining them, and the channels and requests that they carry."""
