"""The look and language of the window: theme, icons, translations, formats, motion."""
