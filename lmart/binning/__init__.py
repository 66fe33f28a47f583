"""From values to bins: bin edges, the sample they are chosen from, and binned training and validation sets."""
