"""Files of trials: what is no record is refused by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmart.errors import DataError
from lmart.formats.trial_log import TrialsFile


@pytest.mark.parametrize(
    "line", ["5", "{", '{"a": NaN}', '{"a": 1, "a": 2}', '{"seconds": 1' + "0" * 400 + "}", "[" * 99_999]
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.jsonl"
    with TrialsFile(str(path), {"data": "x"}):
        pass
    path.write_text(path.read_text() + line + "\n")
    with (
        pytest.raises(DataError, match="is no trial; delete the line or choose another name") as fault,
        TrialsFile(str(path), {"data": "x"}),
    ):
        pass
    assert fault.value.line == 2
