"""How the window looks and speaks: theme, icons, language, formats, motion."""
