"""What Python programs call: reading data and training, with the settings of the command line as keywords."""
