"""The window and the tray icon, which show the node's state. They hold no model and can be closed at any time."""
