"""The model hub: searched, listed, and read as streams of bytes."""
