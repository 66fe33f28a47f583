"""Formats of documents: LETOR text, CSV, TSV and Parquet; readers and writers of blocks of rows."""
