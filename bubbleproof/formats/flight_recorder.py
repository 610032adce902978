"""Dumps of PyTorch's Flight Recorder, one file for each rank, read into the calls they recorded.

The form is that of version 2.x, as ``torch/csrc/distributed/c10d/FlightRecorder.hpp`` writes it
(pickle, or JSON by ``_dump_fr_trace_json``) and ``torch/distributed/flight_recorder/components``
reads it (``types.Op``, ``builder.build_collectives``). Of a dump are read

``entries``
    in the order in which they were issued: ``record_id``, ``process_group`` (name, description),
    ``collective_seq_id``, ``p2p_seq_id``, ``op_id``, ``profiling_name`` (``nccl:send 0->1``,
    ``nccl:recv 1<-0`` by ranks of the group, else ``nccl:all_reduce``), ``input_sizes``,
    ``output_sizes``, ``input_dtypes``, ``output_dtypes``, ``state``, ``retired``, ``is_p2p``;
``pg_config``
    by name of a process group its ``desc`` and its ``ranks``, a text such as ``[0, 1]``;
``version`` and ``comm_lib_version``
    which are those of all ranks of a job.

A dump does not tell its rank: the digits at the end of its name do (``nccl_trace_rank_3``). States
are ``scheduled``, ``started`` and ``completed``; whether a call has started is recorded only with
``TORCH_NCCL_ENABLE_TIMING``, so the first two are one here. The operations of a batch have no state
of their own: theirs is that of the entry ``coalesced`` which ends it. Gloo records collectives
alone, and its completed ones as ``retired``. An ``id`` that does not count from 0 means that the
first calls are lost (``TORCH_FR_BUFFER_SIZE``, 2000 calls where it is not set).

A dump may say anything, and one list may stand in it in a million places: so values are taken for
what they should be or refused, none is turned into text before, and each list is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

from bubbleproof.formats.errors import UnusableInput, about, inside, one_line, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, decode, open_input
from bubbleproof.formats.json_text import parse_json
from bubbleproof.formats.plain_pickle import parse_pickle
from bubbleproof.formats.printable import spelled_out
from bubbleproof.verify.communication.recorded_calls import (
    Communicator,
    RankRecord,
    RecordedCall,
    RecordedRun,
)

LIMIT = 64 * MEBIBYTE
MOST_RANKS = 1 << 20
LARGEST = 10**18 - 1
MOST_CALLS = 1 << 18
LONGEST_TEXT = 1_000
_RANK = re.compile(r"([0-9]+)(?:\.\w+)?$")
_MESSAGE = re.compile(r"(send|recv) ([0-9]{1,7})(?:->|<-)([0-9]{1,7})")
_RANKS = re.compile(r"\[(?:[0-9]{1,7}(?:, ?[0-9]{1,7})*)?\]")
_VERSION = re.compile(r"2\.[0-9]{1,9}")
_STATES = ("scheduled", "started", "completed")
_DEFAULT = "default_pg"
Item = TypeVar("Item")
Tensors = tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]  # sizes and types


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderDump:
    """One file: the record of a rank, its process groups by name, and what made it."""

    path: str
    record: RankRecord
    groups: Mapping[str, Communicator]
    num_ranks: int
    version: tuple[str, str]


def read_dumps(paths: Sequence[FilePath]) -> RecordedRun:
    """The run whose ranks left these dumps; a folder stands for the files in it.

    Raises ``UnusableInput`` in one line that names the file and what was expected there.
    """
    dumps: dict[int, RecorderDump] = {}
    for path in _files(paths):
        with about(path):
            dump = read_dump(path)
            rank = dump.record.rank
            if rank in dumps:
                found = f"a second one: {dumps[rank].path}"
                raise UnusableInput("", f"one dump of rank {rank}", found)
            _require_one_job(dump, dumps.values())
        dumps[rank] = dump
    if not dumps:
        raise ValueError("expected dumps of PyTorch's Flight Recorder, one file for each rank")
    num_ranks = next(iter(dumps.values())).num_ranks
    return RecordedRun(num_ranks, {rank: dump.record for rank, dump in dumps.items()})


def _files(paths: Sequence[FilePath]) -> Iterable[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.is_file())
        else:
            yield path


def _require_one_job(dump: RecorderDump, others: Iterable[RecorderDump]) -> None:
    for other in others:
        if dump.num_ranks != other.num_ranks:
            sizes = f"{dump.num_ranks} ranks, {other.path} is of one with {other.num_ranks}"
            raise UnusableInput("pg_config", "dumps of one job", f"one of a job with {sizes}")
        if dump.version != other.version:
            found = f"{' '.join(dump.version)}, {other.path} has {' '.join(other.version)}"
            raise UnusableInput("version", "dumps of one job, with one version", found)
        for name, group in dump.groups.items():
            theirs = other.groups.get(name)
            if theirs and {*theirs.ranks} != {*group.ranks} and {*theirs.ranks} & {*group.ranks}:
                found = f"other ranks of the group {quoted(name)} than {other.path}"
                raise UnusableInput("pg_config", "dumps of one job", found)


def read_dump(path: FilePath) -> RecorderDump:
    """One dump, in either form."""
    with about(path):
        with open_input(
            path, limit=LIMIT
        ) as stream:  # a file that is not there has no name to judge
            name = Path(path).name
            digits = _RANK.search(name)
            if digits is None or len(digits[1]) > 7:
                raise UnusableInput("", "a name that ends in the rank, as nccl_trace_rank_3", name)
            content = stream.read(LIMIT + 1)
        if not content:
            raise UnusableInput("", "a dump of the Flight Recorder", "an empty file")
        is_pickle = content[:1] == b"\x80"
        value = parse_pickle(content) if is_pickle else parse_json(decode(content))
        return _dump(str(path), int(digits[1]), value)


def _dump(path: str, rank: int, value: object) -> RecorderDump:
    keys = ("version", "pg_config", "entries")
    if not isinstance(value, Mapping) or any(key not in value for key in keys):
        known = [*map(quoted, islice(value, 9))] if isinstance(value, Mapping) else []
        found = one_line(f"the keys {', '.join(known)}", 80) if known else quoted(value)
        raise UnusableInput("", f"a dump with {', '.join(keys)}", found)
    version = value["version"]
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise UnusableInput("version", "2.x", quoted(version))
    groups, num_ranks = _groups(value["pg_config"], rank)
    key = "comm_lib_version" if "comm_lib_version" in value else "nccl_version"
    library = _text(value, key) if key in value else ""
    entries = value["entries"]
    if not isinstance(entries, list):
        raise UnusableInput("entries", "a list (dump with includeCollectives)", quoted(entries))
    if len(entries) > MOST_CALLS:
        raise UnusableInput("entries", f"at most {MOST_CALLS} calls", str(len(entries)))
    return RecorderDump(
        path=path,
        record=_record(rank, entries, groups),
        groups=groups,
        num_ranks=num_ranks,
        version=(version, library),
    )


def _groups(config: object, rank: int) -> tuple[dict[str, Communicator], int]:
    """The process groups by name, and how many ranks the job has."""
    if not isinstance(config, Mapping) or not config:
        raise UnusableInput("pg_config", "a table of process groups", quoted(config))
    groups: dict[str, Communicator] = {}
    job: tuple[int, ...] = ()
    for key, group in config.items():
        with inside("pg_config"):
            name = _name(key)
        with inside(f"pg_config.{name}"):
            ranks = _ranks(group.get("ranks") if isinstance(group, Mapping) else None)
            groups[name] = Communicator(name=name, ranks=ranks)
            if group.get("desc") == _DEFAULT:
                job = ranks
    job = job or tuple(r for group in groups.values() for r in group.ranks)
    num_ranks = max(job, default=0) + 1
    if rank >= num_ranks:
        found = f"{num_ranks} ranks in pg_config; rename it if another rank wrote it"
        raise UnusableInput("", f"a dump of rank {rank}, as the file is named", found)
    return groups, num_ranks


def _ranks(text: object) -> tuple[int, ...]:
    if not isinstance(text, str) or not _RANKS.fullmatch(text):
        raise UnusableInput("ranks", "a text such as '[0, 1]'", quoted(text))
    ranks = tuple(sorted(map(int, re.findall("[0-9]+", text))))
    if ranks and ranks[-1] >= MOST_RANKS:
        raise UnusableInput("ranks", f"ranks below {MOST_RANKS}", str(ranks[-1]))
    for one, other in pairwise(ranks):
        if one == other:
            raise UnusableInput("ranks", "ranks that differ", f"{one} twice")
    return ranks


def _record(rank: int, entries: Sequence[object], groups: Mapping[str, Communicator]) -> RankRecord:
    lists = _Lists()
    rows = [_RecorderEntry.of(number, entry, lists) for number, entry in enumerate(entries)]
    calls: list[RecordedCall] = []
    for batch, (_, found) in enumerate(groupby(rows, key=lambda row: row.key)):
        *inner, last = found
        is_batch = last.operation == "coalesced"
        for ordinal, row in enumerate(inner if is_batch else [*inner, last]):
            with inside(f"entries[{row.place}]"):
                call = row.call(rank, len(calls), groups, ordinal)
            if is_batch:
                call = replace(call, batch=batch, is_completed=last.is_completed)
            calls.append(call)
    is_whole = [row.record_id for row in rows] == list(range(len(rows)))
    return RankRecord(rank=rank, calls=tuple(calls), is_whole=is_whole)


class _Lists:
    """The lists of a dump as tuples, each read once wherever it stands."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, object], tuple[Any, ...]] = {}

    def of(self, value: object, what: str, each: Callable[[object], Item]) -> tuple[Item, ...]:
        """A list of ``what``, in which ``each`` is read so."""
        if not isinstance(value, list | tuple):
            raise UnusableInput("", f"a list of {what}", quoted(value))
        if (id(value), each) not in self._read:
            self._read[id(value), each] = tuple(map(each, value))
        return self._read[id(value), each]

    def tensors(self, entry: Mapping[str, object], which: str) -> Tensors:
        """The sizes and the types of an entry's inputs or outputs."""
        with inside(f"{which}_sizes"):
            sizes = self.of(entry.get(f"{which}_sizes"), "sizes", self._sizes)
        with inside(f"{which}_dtypes"):  # not in dumps before 2.1
            return sizes, self.of(entry.get(f"{which}_dtypes", []), "types", _name)

    def _sizes(self, value: object) -> tuple[int, ...]:
        return self.of(value, "sizes", _natural)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecorderEntry:
    """An entry with the values that are read of it."""

    place: int
    record_id: int
    operation: str
    group: tuple[str, str]
    is_message: bool
    sequence: int
    inputs: Tensors
    outputs: Tensors
    is_completed: bool

    @classmethod
    def of(cls, place: int, entry: object, lists: _Lists) -> _RecorderEntry:
        with inside(f"entries[{place}]"):
            if not isinstance(entry, Mapping):
                raise UnusableInput("", "a table", quoted(entry))
            backend, _, operation = _text(entry, "profiling_name").partition(":")
            is_message = bool(entry.get("is_p2p", operation.startswith(("send", "recv"))))
            state = _text(entry, "state")
            if state not in _STATES:
                raise UnusableInput("state", f"one of {', '.join(_STATES)}", quoted(state))
            is_retired = backend == "gloo" and entry.get("retired") is True
            return cls(
                place=place,
                record_id=_whole(entry, "record_id"),
                operation=operation,
                group=_group(entry),
                is_message=is_message,
                sequence=_whole(entry, "p2p_seq_id" if is_message else "collective_seq_id"),
                inputs=lists.tensors(entry, "input"),
                outputs=lists.tensors(entry, "output"),
                is_completed=state == "completed" or is_retired,
            )

    @property
    def key(self) -> tuple[tuple[str, str], bool, int]:
        """What the entries of a batch have in common, and no others beside each other."""
        return self.group, self.is_message, self.sequence

    def call(
        self, rank: int, number: int, groups: Mapping[str, Communicator], ordinal: int
    ) -> RecordedCall:
        communicator = self._communicator(groups)
        operation, peer = self.operation, None
        sizes, dtypes = self.inputs
        if (found := _MESSAGE.fullmatch(operation)) is not None:
            operation, own, other = found[1], int(found[2]), int(found[3])
            ranks = communicator.ranks
            if max(own, other) >= len(ranks):
                raise UnusableInput("profiling_name", f"ranks of {communicator}", found[0])
            if ranks[own] != rank:
                named = f"one of rank {ranks[own]}; is the file named for another rank?"
                raise UnusableInput("profiling_name", f"a call of rank {rank}", named)
            peer = ranks[other]
            sizes, dtypes = self.inputs if operation == "send" else self.outputs
        return RecordedCall(
            rank=rank,
            number=number,
            record_id=self.record_id,
            operation=operation,
            communicator=communicator,
            sizes=sizes,
            dtypes=dtypes,
            peer=peer,
            sequence=(self.sequence, 0 if peer is not None else ordinal),
            is_completed=self.is_completed,
        )

    def _communicator(self, groups: Mapping[str, Communicator]) -> Communicator:
        """By name; of a job with one group that one (gloo's has no name in ``pg_config``)."""
        name, _ = self.group
        if name in groups:
            return groups[name]
        if len(groups) == 1:
            return next(iter(groups.values()))
        raise UnusableInput("process_group", "one of pg_config", quoted(name))


def _text(entry: Mapping[str, object], key: str) -> str:
    with inside(key):
        return _name(entry.get(key))


def _name(value: object) -> str:
    """A text of a dump as it may be shown: what a terminal would obey is spelled out."""
    if not isinstance(value, str):
        raise UnusableInput("", "a text", quoted(value))
    if len(value) > LONGEST_TEXT:
        raise UnusableInput("", f"at most {LONGEST_TEXT} characters", quoted(value))
    return spelled_out(value)


def _whole(entry: Mapping[str, object], key: str) -> int:
    with inside(key):
        return _natural(entry.get(key))


def _natural(value: object) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise UnusableInput("", "a whole number of at most 18 digits", quoted(value))
    return value


def _group(entry: Mapping[str, object]) -> tuple[str, str]:
    value = entry.get("process_group")
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UnusableInput("process_group", "a name and a description", quoted(value))
    with inside("process_group"):
        return _name(value[0]), _name(value[1])
