"""What people look at: summaries of models and runs, and the page that eval writes. Nothing here prints."""
