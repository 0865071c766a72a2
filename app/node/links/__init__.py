"""Links to other machines: discovers machines, and measures, saves and reports the links."""
