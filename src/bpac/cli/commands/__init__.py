"""One module per command, with the name of the command."""
