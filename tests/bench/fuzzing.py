"""Read made-up and mutilated text beside the slow twin, for as long as asked: same rows or same refusal, or it says so.

    nice python tests/bench/fuzzing.py [--minutes 5] [--seed 0] [--decimals 0]

LETOR text against tests/reference/letor.py; CSV and TSV without quotes, read by the kernel, against the same text
read by Python's csv. Inputs that the reader answers in a new way (kinds of faults, of numbers, of rows) are kept and
mutilated further. Each is read in pieces, buffers and chunks of sizes that change from one to the next.
--decimals N first reads N million random, hard and plain decimals, to the bits of float().
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import reference.letor
from helpers.reading import hard_decimals, listed, plain_decimals, rows_of, wrong_decimals

from lmart.errors import DataError
from lmart.formats.documents import text_reader as text_module

Answer = tuple[list[Any], list[DataError]]
LAYOUTS = [b"1 qid:1 1:1\n", b"1 qid:1 1:1\n", b"1 qid:1 1:1\n", b"1 1:1\n", b"qid:1 1:1\n", b"1:1\n"]
PIECES = [
    *(b"1 qid:1 ", b"0 qid:2\t", b"3.5 qid:x ", b"1 ", b"qid:7 ", b"qid:", b" 1:0.5", b" 2:-7e-2", b" 3:nan"),
    *(b" 4:1e400", b" 5:-1e-400", b" 3:0,5", b" 1:1_0", b" 7:0x10", b" 1: ", b" :1", b" 12", b" 1:2:3", b" -3:1"),
    *(b" 9223372036854775807:2", b" 9223372036854775808:2", b" 00000000000000000000007:1", b"# docid = X y", b"#Z"),
    *(b"\r", b"\r\n", b"\n", b"\n\n", b"\0", b"\t", b"  ", b"\xc2\xb2", b"\xef\xbb\xbf", b"\xff", b"\x0b", b"\x1f"),
    *(b"17976931348623158", b"e308", b"e-324", b"2.2250738585072011e-308", b"9007199254740993", b"+", b"-", b"."),
    *(b"12345678901234567890123456789", b"0000000000000000000000", b"Infinity", b"-NaN", b"infinit", b"na", b"null"),
    *(b" 1:inf", b" NA", b"#", b"\x7f", b"E", b":", b","),
]  # fmt: skip
GENTLE = [
    *(b"\n1 qid:1 ", b"\n0 qid:9\t", b" 1:0.5", b" 20:-7e-2", b" 3:nan", b" 5:-1e-400", b" 6:0.1", b" 7:1", b"0"),
    *(b"# docid = X y", b"#Z", b"\r\n", b"\n\n", b"\t", b"  ", b" 9223372036854775807:2", b"1", b"5", b"e5"),
    b" 8:12345678901234567890123",
]  # fmt: skip
HEADERS = [b"label,qid,5,docid\n", b"qid,x,label,y\n", b"a,b,rel\n", b"label,group,1,0\n"]


def mutilated(text: bytes, chance: random.Random, corpus: list[bytes]) -> bytes:
    """Return the text with a few bytes or pieces put in, taken out, doubled, or taken from another one."""
    pieces = GENTLE if chance.random() < 0.6 else PIECES
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        at = chance.randint(0, len(text))
        to = min(len(text), at + chance.choice((0, 0, 0, 1, 1, 2, 5, 20)))
        if pieces is GENTLE:  # between fields, so that much of it can be read
            at = to = chance.choice([len(text), *(match.start() for match in re.finditer(rb"[ \t\n,]", text))])
        kind = chance.random() * (0.5 if pieces is GENTLE else 1.0)
        if kind < 0.5:
            new = chance.choice(pieces)
        elif kind < 0.6:
            new = bytes([chance.randrange(256)])
        elif kind < 0.7:
            new = b""
        elif kind < 0.8:
            new = text[at:to] * 2
        elif kind < 0.9:
            new = repr(chance.uniform(-1, 1) * 10.0 ** chance.randint(-320, 308)).encode()
        else:
            other = chance.choice(corpus)
            start = chance.randint(0, len(other))
            new = other[start : start + chance.randint(1, 40)]
        text = text[:at] + new + text[to:]
    return text if len(text) <= 400 else text[: text.rfind(b"\n", 0, 200) + 1]


def answer_of(text: bytes, format: str, chance: random.Random, python: bool, **options: Any) -> Answer:
    """Return the rows, or the faults, of a text read in pieces."""
    pieces = []
    while text:
        size = chance.choice((1, 7, 40, 1000, 1000))
        pieces.append(text[:size])
        text = text[size:]
    reader: Any = rows_of(pieces, format, keep_document_ids=True, group_by_qid=True, max_errors=1000, **options)
    if python:
        reader._quoted = True
    try:
        return listed(chain.from_iterable(reader.volatile_batches()) if chance.random() < 0.8 else reader, reader), []
    except DataError as fault:
        return [], [fault, *fault.more]


def letor(chance: random.Random, corpus: list[bytes]) -> tuple[bytes, Answer, str]:
    """Read one LETOR text both ways; return it, the reader's answer, and what differs."""
    head = chance.choice(LAYOUTS)
    layout = (head[:1] == b"1" and head[:2] != b"1:", b"qid:" in head)
    start = chance.choice(corpus)
    if not layout[1]:
        start = re.sub(rb"qid:\S* ?", b"", start)
    if not layout[0]:
        start = re.sub(rb"(?m)^[0-9.]+[ \t]+", b"", start)
    text = head + mutilated(start, chance, corpus)
    infinite, last_wins = chance.random() < 0.5, chance.random() < 0.5
    rows, wrong = reference.letor.letor_rows(text, *layout, infinite, last_wins)
    found, faults = answer_of(
        text, "letor", chance, False, allow_inf=infinite, duplicates="last" if last_wins else "error",
        require_labels=layout[0], require_queries=layout[1],
    )  # fmt: skip
    expected = [
        (label if layout[0] else None, _text(query), cells, _text(document)) for label, query, cells, document in rows
    ]
    foreign = [fault for fault in faults if "UTF-8" in fault.message]
    named = [fault.line for fault in faults if fault not in foreign]
    problem = ""
    if any("cannot be read" in fault.message for fault in faults):
        problem = "a fault without a reason"
    elif sorted(set(map(int, map(str, named)))) != sorted(set(wrong[: len(named)])) or (wrong and not faults):
        problem = f"the twin refuses lines {wrong}, the reader {named}"
    elif [fault.line for fault in faults] != sorted(fault.line or 0 for fault in faults):
        problem = "the faults are not in order"
    elif not faults and repr(found) != repr(expected):
        problem = f"the twin reads {expected}"
    elif any(fault.line not in wrong for fault in foreign) and not _foreign_ids(rows):
        problem = "an id is refused that is UTF-8"
    elif not faults and _foreign_ids(rows):
        problem = "an id is taken that is not UTF-8"
    return text, (found, faults), problem


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _foreign_ids(rows: list[Any]) -> bool:
    try:
        for row in rows:
            row[1].decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def delimited(chance: random.Random, corpus: list[bytes]) -> tuple[bytes, Answer, str]:
    """Read one table without quotes by the kernel and by Python's csv; return it, the kernel's answer, what differs."""
    text = chance.choice(HEADERS) + mutilated(chance.choice(corpus), chance, corpus).replace(b'"', b"")
    format = chance.choice(("csv", "tsv"))
    if format == "tsv":
        text = text.replace(b",", b"\t")
    options = {"allow_inf": chance.random() < 0.5, "require_queries": False}
    first = answer_of(text, format, chance, False, **options)
    second = answer_of(text, format, chance, True, **options)
    problem = ""
    if bool(first[1]) != bool(second[1]) or (not first[1] and repr(first[0]) != repr(second[0])):
        problem = f"Python's csv gives {second}"
    return text, first, problem


def shape(answer: Answer) -> tuple[Any, ...]:
    """Return what is new or known about an answer: kinds of faults in order; how many rows, cells, ids, roughly."""
    rows, faults = answer
    kinds = tuple(re.sub(r"'.*'|\d+", "", fault.message)[:50] for fault in faults[:3])
    cells = [value for row in rows for _, value in row[2]]
    special = tuple(sorted({repr(value)[-4:] for value in cells if not 1e-300 < abs(value) < 1e300}))[:4]
    return kinds, min(len(rows), 4), min(len(cells), 6), special, any(row[3] for row in rows)


def read_decimals(n: int, seed: int) -> None:
    """Read n decimals; end the process when one has other bits than float() gives."""
    done = 0
    while done < n:
        tokens = hard_decimals(100_000, seed + done) + plain_decimals(100_000, seed + done)
        random.Random(seed + done).shuffle(tokens)
        if wrong := wrong_decimals(tokens):
            sys.exit(f"{len(wrong)} decimals are read wrong, the first is {wrong[0]!r}")
        done += len(tokens)
    if n:
        print(f"{done} decimals have the bits of float()", flush=True)


def main() -> None:
    """Run until the time is over or something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--decimals", type=float, default=0.0, help="millions")
    args = parser.parse_args()
    read_decimals(int(args.decimals * 1e6), args.seed)
    chance = random.Random(args.seed)
    kinds: dict[str, Callable[[random.Random, list[bytes]], tuple[bytes, Answer, str]]] = {
        "letor": letor,
        "delimited": delimited,
    }
    corpora = {
        "letor": [b"1 qid:1 1:0.5 2:-3e2 # docid = A\n0 qid:1 2:7\n", b"0 qid:2\n3 qid:3 9:1 3:2\r\n"],
        "delimited": [b"1,q 1,0.5,d\n0,q 1,,e\n", b"q,1e3,2,nan\r\nr,NA,0, 7 \n"],
    }
    seen: set[tuple[Any, ...]] = set()
    counts = dict.fromkeys(kinds, 0)
    refused = 0
    until = time.monotonic() + 60 * args.minutes
    usual = text_module.FIRST_BLOCK, text_module.BLOCK, text_module.CHUNK
    failed = False
    while time.monotonic() < until and not failed:
        for name in ("letor", "letor", "letor", "delimited"):
            sizes = usual if chance.random() < 0.5 else [chance.choice((5, 16, 64)) for _ in range(3)]
            text_module.FIRST_BLOCK, text_module.BLOCK, text_module.CHUNK = sizes
            text, answer, problem = kinds[name](chance, corpora[name])
            counts[name] += 1
            refused += bool(answer[1])
            if problem:
                print(f"{name}: {text!r}\n  the reader gives {answer}\n  {problem}", flush=True)
                failed = True
            if (known := (name, *shape(answer))) not in seen:
                seen.add(known)
                rest = text.split(b"\n", 1)[1]
                if not answer[1] or chance.random() < 0.05:  # most start from sound text, else all would be refused
                    corpora[name].append(rest)
    kept = sum(map(len, corpora.values()))
    read = f"{counts['letor']} LETOR texts and {counts['delimited']} tables"
    print(f"{read}, {refused} of them refused, {kept} kept to go on from")
    sys.exit(failed)


if __name__ == "__main__":
    main()
