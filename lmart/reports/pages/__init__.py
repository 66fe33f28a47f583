"""Pages for people: evaluations, models, runs and data, each as one HTML file. Nothing here is printed or written."""
