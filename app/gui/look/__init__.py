"""The look and language of the window, including theme, sizes, icons, translations, formats and animations."""
