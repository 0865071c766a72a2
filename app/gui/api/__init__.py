"""The node as the window sees it: asked over its loopback API, its state followed."""
