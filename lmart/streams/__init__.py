"""Inputs and outputs: files, pipes, standard streams, compressed or not."""

from lmart.streams.common import reason
from lmart.streams.inputs import InputStream, open_input, read_all
from lmart.streams.outputs import AtomicOutput, check_output

__all__ = ["AtomicOutput", "InputStream", "check_output", "open_input", "read_all", "reason"]
