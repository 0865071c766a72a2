"""The computing hardware of this machine: processor, memory and graphics cards, and the engines that use them."""
