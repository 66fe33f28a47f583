"""Inputs and outputs: files, pipes, standard streams, compressed or not."""

from lmart.streams.common import reason
from lmart.streams.inputs import InputStream, open_input, read_all
from lmart.streams.outputs import AtomicOutput, AtomicOutputs, check_output
from lmart.streams.spool import Spool, can_be_reread, can_spool, state_of

__all__ = [
    "AtomicOutput",
    "AtomicOutputs",
    "InputStream",
    "Spool",
    "can_be_reread",
    "can_spool",
    "check_output",
    "open_input",
    "read_all",
    "reason",
    "state_of",
]
