"""lmart: LambdaMART on the command line and from Python."""

__version__ = "0.1.0"
