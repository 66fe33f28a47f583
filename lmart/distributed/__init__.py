"""Work on the workers of a Dask cluster, with the bytes of one machine: training, scoring, measuring.

The process of the command, which is called the driver, never holds rows.
"""
