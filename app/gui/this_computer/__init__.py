"""The This computer page, with the hardware of this machine, the resources it lends and the lending hours."""
