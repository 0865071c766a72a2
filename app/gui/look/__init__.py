"""The look and language of the window: theme, sizes, icons, translations, formats and animations."""
