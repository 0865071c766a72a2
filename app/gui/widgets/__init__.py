"""Small widgets that several pages are built of."""
