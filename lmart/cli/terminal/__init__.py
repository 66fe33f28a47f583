"""What is shown to people: messages, progress and tables."""
