"""Settings, Local API: keys, origins, other servers."""
