"""The application and its main window: startup, sidebar, tray icon, the base class of pages, and navigation."""
