"""Widgets and layouts that several pages share."""
