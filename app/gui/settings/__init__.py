"""The Settings page: all settings in one place that can be searched."""
