"""What this machine lends, when, and what it has: the page `This computer`."""
