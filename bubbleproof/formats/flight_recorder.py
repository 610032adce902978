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
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from bubbleproof.formats.errors import UnusableInput, about, inside, one_line, quoted
from bubbleproof.formats.files import MEBIBYTE, FilePath, decode, open_input
from bubbleproof.formats.json_text import parse_json
from bubbleproof.formats.plain_pickle import parse_pickle
from bubbleproof.verify.communication.recorded_calls import (
    Communicator,
    RankRecord,
    RecordedCall,
    RecordedRun,
)

LIMIT = 256 * MEBIBYTE
MOST_RANKS = 1 << 20
_RANK = re.compile(r"(\d+)(?:\.\w+)?$")
_MESSAGE = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")
_RANKS = re.compile(r"\[(?:\d+(?:, ?\d+)*)?\]")
_STATES = ("scheduled", "started", "completed")
_DEFAULT = "default_pg"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderDump:
    """One file: the record of a rank, its process groups by name, and what made it."""

    path: str
    record: RankRecord
    groups: Mapping[str, Communicator]
    job: tuple[int, ...]
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
    job = next(iter(dumps.values())).job
    return RecordedRun(len(job), {rank: dump.record for rank, dump in dumps.items()})


def _files(paths: Sequence[FilePath]) -> Iterable[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.is_file())
        else:
            yield path


def _require_one_job(dump: RecorderDump, others: Iterable[RecorderDump]) -> None:
    for other in others:
        if dump.job != other.job:
            sizes = f"{len(dump.job)} ranks, {other.path} is of one with {len(other.job)}"
            raise UnusableInput("pg_config", "dumps of one job", f"one of a job with {sizes}")
        if dump.version != other.version:
            found = f"{' '.join(dump.version)}, {other.path} has {' '.join(other.version)}"
            raise UnusableInput("version", "dumps of one job, with one version", found)
        for name, group in dump.groups.items():
            theirs = other.groups.get(name)
            if theirs and set(theirs.ranks) != set(group.ranks) and _share(theirs, group):
                found = f"other ranks of the group {quoted(name)} than {other.path}"
                raise UnusableInput("pg_config", "dumps of one job", found)


def _share(one: Communicator, other: Communicator) -> bool:
    return not set(one.ranks).isdisjoint(other.ranks)


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
        keys_found = list(map(str, value)) if isinstance(value, Mapping) else []
        found = one_line(f"the keys {', '.join(keys_found)}", 80) if keys_found else quoted(value)
        raise UnusableInput("", f"a dump with {', '.join(keys)}", found)
    version = value["version"]
    if not isinstance(version, str) or not version.startswith("2."):
        raise UnusableInput("version", "2.x", quoted(version))
    groups, job = _groups(value["pg_config"], rank)
    library = value.get("comm_lib_version", value.get("nccl_version", ""))
    entries = value["entries"]
    if not isinstance(entries, list):
        raise UnusableInput("entries", "a list (dump with includeCollectives)", quoted(entries))
    return RecorderDump(
        path=path,
        record=_record(rank, entries, groups),
        groups=groups,
        job=job,
        version=(version, str(library)),
    )


def _groups(config: object, rank: int) -> tuple[dict[str, Communicator], tuple[int, ...]]:
    """The process groups by name, and the ranks of the job."""
    if not isinstance(config, Mapping) or not config:
        raise UnusableInput("pg_config", "a table of process groups", quoted(config))
    groups: dict[str, Communicator] = {}
    job: tuple[int, ...] = ()
    for name, group in config.items():
        with inside(f"pg_config.{name}"):
            text = group.get("ranks") if isinstance(group, Mapping) else None
            if not isinstance(text, str) or not _RANKS.fullmatch(text):
                raise UnusableInput("ranks", "a text such as '[0, 1]'", quoted(text))
            ranks = tuple(map(int, re.findall(r"\d+", text[:MOST_RANKS])))
            if ranks and max(ranks) >= MOST_RANKS:
                raise UnusableInput("ranks", f"ranks below {MOST_RANKS}", str(max(ranks)))
            groups[str(name)] = Communicator(name=str(name), ranks=tuple(sorted(ranks)))
            if group.get("desc") == _DEFAULT:
                job = groups[str(name)].ranks
    job = job or tuple(sorted({r for group in groups.values() for r in group.ranks}))
    job = tuple(range(max(job, default=0) + 1))
    if rank not in job:
        found = f"{len(job)} ranks in pg_config; rename it if another rank wrote it"
        raise UnusableInput("", f"a dump of rank {rank}, as the file is named", found)
    return groups, job


def _record(rank: int, entries: Sequence[object], groups: Mapping[str, Communicator]) -> RankRecord:
    rows = [_RecorderEntry.of(number, entry) for number, entry in enumerate(entries)]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecorderEntry:
    """An entry with the values that are read of it."""

    place: int
    record_id: int
    operation: str
    group: tuple[str, str]
    is_message: bool
    sequence: int
    inputs: tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]
    outputs: tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]
    is_completed: bool

    @classmethod
    def of(cls, place: int, entry: object) -> _RecorderEntry:
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
                inputs=(_sizes(entry, "input_sizes"), _types(entry, "input_dtypes")),
                outputs=(_sizes(entry, "output_sizes"), _types(entry, "output_dtypes")),
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
    value = entry.get(key)
    if not isinstance(value, str):
        raise UnusableInput(key, "a text", quoted(value))
    return value


def _whole(entry: Mapping[str, object], key: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnusableInput(key, "a whole number", quoted(value))
    return value


def _group(entry: Mapping[str, object]) -> tuple[str, str]:
    value = entry.get("process_group")
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UnusableInput("process_group", "a name and a description", quoted(value))
    return str(value[0]), str(value[1])


def _sizes(entry: Mapping[str, object], key: str) -> tuple[tuple[int, ...], ...]:
    value = entry.get(key)
    is_table = isinstance(value, list) and all(isinstance(row, list | tuple) for row in value)
    if not is_table or not isinstance(value, list):
        raise UnusableInput(key, "a list of sizes", quoted(value))
    if not all(isinstance(size, int) and size >= 0 for row in value for size in row):
        raise UnusableInput(key, "sizes of 0 or more", quoted(value))
    return tuple(tuple(row) for row in value)


def _types(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])  # not in dumps before 2.1
    if not isinstance(value, list):
        raise UnusableInput(key, "a list of types", quoted(value))
    return tuple(map(str, value))
