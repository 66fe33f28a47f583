"""Models of XGBoost: its document in JSON and UBJSON, and dumps."""
