"""Widgets and layouts shared by several pages."""
