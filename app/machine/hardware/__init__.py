"""What this computer computes with: processor, graphics cards, memory, engines."""
