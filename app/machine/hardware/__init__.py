"""The computing hardware of this machine: processor, graphics cards, memory and engines."""
