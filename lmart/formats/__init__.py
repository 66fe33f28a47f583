"""One file a format, each a reader and/or a writer; `registry` knows them all."""
