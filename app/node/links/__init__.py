"""Links to other machines: measured, remembered, told to others, and how machines are found."""
