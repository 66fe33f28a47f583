"""Options of the commands, grouped as the commands take them."""
