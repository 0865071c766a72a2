"""Starts the window: application, main window, sidebar, tray, pages, navigation."""
