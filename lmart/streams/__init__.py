"""Inputs and outputs: files, pipes, standard streams, compressed or not."""

from lmart.streams.common import changed_while_read, reason
from lmart.streams.digests import Digest, InputDigests, recording_digests
from lmart.streams.inputs import (
    LARGEST_WHOLE,
    InputStream,
    Spool,
    can_be_reread,
    can_spool,
    open_input,
    read_all,
    read_pieces,
    refuse_changed_files,
    state_of,
)
from lmart.streams.outputs import AtomicOutput, AtomicOutputs, check_output

__all__ = [
    "LARGEST_WHOLE",
    "AtomicOutput",
    "AtomicOutputs",
    "Digest",
    "InputDigests",
    "InputStream",
    "Spool",
    "can_be_reread",
    "can_spool",
    "changed_while_read",
    "check_output",
    "open_input",
    "read_all",
    "read_pieces",
    "reason",
    "recording_digests",
    "refuse_changed_files",
    "state_of",
]
