"""Updates of Poolhouse: signed releases are found, downloaded, verified and installed alongside the running
version.

app/machine/versions stores the installed versions, and app/launcher.py starts one of them.
"""
