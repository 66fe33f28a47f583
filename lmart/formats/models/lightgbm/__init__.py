"""Models of LightGBM, as text and as JSON."""
