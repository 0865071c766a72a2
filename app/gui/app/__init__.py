"""The application and its main window, with startup, sidebar, tray icon, navigation and the base class of pages."""
