"""Discovery of machines: mDNS announcements, and the addresses at which members may be reached."""
