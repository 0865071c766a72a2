"""The decision whether this machine lends now, based on the owner's rules and sensor readings."""
