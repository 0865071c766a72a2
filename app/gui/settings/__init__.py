"""The Settings page, which collects all settings in one place and can search them."""
