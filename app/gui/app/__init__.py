"""The frame of the window: application, main window, sidebar, tray, pages and navigation."""
