"""Worker processes of this machine: started, bounded, spoken to, measured."""
