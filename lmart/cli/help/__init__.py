"""Help of the commands: one screen for -h, all options in groups for --help."""
