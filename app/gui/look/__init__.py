"""The appearance and language of the window: theme, sizes, icons, translations, formats and motion."""
