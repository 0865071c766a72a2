"""The window and the tray: a view of the node, in Qt. It holds no model and may be closed at any moment."""
