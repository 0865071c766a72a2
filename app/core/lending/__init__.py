"""The decision whether this machine lends now: the owner's rules applied to sensor readings."""
