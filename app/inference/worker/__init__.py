"""Worker processes of this machine: how they are started, limited, addressed and measured."""
