"""Trying mutants: a pytest session that has collected its tests forks a process for each.

The first fork runs every test on the code as it is, but that statements which have mutants note
when they run; so it knows how long each test takes and what it runs. A mutant's process puts the
changed code into the function in memory, and runs the tests that run its statement until one fails.
"""

from __future__ import annotations

import builtins
import gc
import os
import pickle
import re
import resource
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import BinaryIO, NoReturn

import pytest

from proofs_tests.mutate.mutants import NOTED, Mutant, mutated, noting

KILLED, ALIVE, LATE, UNCALLED = "killed", "alive", "time limit", "not called"
EXAMPLES = 20  # of a property
NOT_LOADED = 2  # status of a process that finds no function to change
_VERDICTS = {0: ALIVE, 1: KILLED, NOT_LOADED: UNCALLED}
Statement = tuple[str, int]  # file and line


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Of each test its processor seconds and the statements it runs, by its place."""

    seconds: list[float]
    called: list[set[Statement]]
    failed: list[str]


@dataclass(kw_only=True, eq=False)
class Trials:
    """The plugin: what to try, and the verdicts (by mutant) once the session has ended."""

    paths: Mapping[str, Path]  # of the package's files
    mutants: Sequence[Mutant]
    workers: int
    most_seconds: float  # of tests on one mutant, as they take on the code as it is
    deadline: float  # in ``time.monotonic``: no mutant begins after it
    tell: Callable[[str], None]
    sources: dict[str, str] = field(default_factory=dict)  # as they were when this began
    verdicts: dict[Mutant, str] = field(default_factory=dict)
    error: str = ""
    failures: int = 0  # seen by the process that runs tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Failing examples need no shrinking here, and one more test tells more than one more."""
        from hypothesis import Phase, settings  # by now pytest has loaded its plugin

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", settings(), phases=phases, database=None, max_examples=EXAMPLES
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failures += report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            self.error = "the tests cannot be collected"
            return True
        files = {mutant.file for mutant in self.mutants}
        self.sources = {file: self.paths[file].read_text("utf-8") for file in files}
        baseline = self._baseline(session.items)
        self.tell(f"{len(session.items)} tests, {sum(baseline.seconds):.0f} s on the code as it is")
        if baseline.failed:
            self.error = f"a test fails on the code as it is: {baseline.failed[0]}"
            return True
        self._try_all(session.items, baseline)
        return True

    def _baseline(self, items: Sequence[pytest.Item]) -> Baseline:
        """What the tests do on the code as it is; each worker runs a share of them."""
        shares = [items[number :: self.workers] for number in range(self.workers)]
        found: list[Baseline] = []
        for answer in [self._forked(share) for share in shares]:
            with answer:
                found.append(pickle.load(answer))
        order = [(i % self.workers, i // self.workers) for i in range(len(items))]
        return Baseline(
            seconds=[found[worker].seconds[at] for worker, at in order],
            called=[found[worker].called[at] for worker, at in order],
            failed=[test for part in found for test in part.failed],
        )

    def _forked(self, items: Sequence[pytest.Item]) -> BinaryIO:
        """Where a process of its own will write what it measures."""
        reader, writer = os.pipe()
        if not os.fork():
            os.close(reader)
            with os.fdopen(writer, "wb") as out:
                pickle.dump(self._measured(items), out)
            os._exit(0)
        os.close(writer)
        return os.fdopen(reader, "rb")

    def _measured(self, items: Sequence[pytest.Item]) -> Baseline:
        _quiet()
        noted: set[Statement] = set()
        setattr(builtins, NOTED, noted)
        for file, source in self.sources.items():
            path = str(self.paths[file])
            lines = {mutant.line for mutant in self.mutants if mutant.file == file}
            _put(path, noting(source, path, file, lines))
        seconds, called, failed = [], [], []
        for item in items:
            noted.clear()
            before, begun = self.failures, time.process_time()
            _run(item)
            seconds.append(time.process_time() - begun)
            called.append(set(noted))
            if self.failures > before:
                failed.append(item.nodeid)
        return Baseline(seconds=seconds, called=called, failed=failed)

    def _try_all(self, items: Sequence[pytest.Item], baseline: Baseline) -> None:
        running: dict[int, tuple[Mutant, float]] = {}
        left = list(self.mutants)[::-1]
        while left or running:
            if time.monotonic() > self.deadline:
                left.clear()
            while left and len(running) < self.workers:
                mutant = left.pop()
                chosen, limit = self._chosen(mutant, items, baseline)
                if not chosen:
                    self._judge(mutant, UNCALLED)
                    continue
                child = os.fork() or self._try(mutant, [items[i] for i in chosen], limit)
                running[child] = mutant, time.monotonic() + 30 * limit
            child, status = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
            if child in running:
                is_late = os.WIFSIGNALED(status)
                verdict = LATE if is_late else _VERDICTS[os.WEXITSTATUS(status)]
                self._judge(running.pop(child)[0], verdict)
            for child, (_, deadline) in running.items():
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.01)

    def _chosen(
        self, mutant: Mutant, items: Sequence[pytest.Item], baseline: Baseline
    ) -> tuple[list[int], float]:
        """The tests that run the statement, and a generous limit in seconds.

        Those come first whose file has most words of its path in common with the mutant's, and of
        these the quick ones.
        """
        statement = mutant.file, mutant.line
        tests = [i for i, called in enumerate(baseline.called) if statement in called]
        words = _words(mutant.file)
        near = {i: len(words & _words(items[i].nodeid.split("::")[0])) for i in tests}
        chosen: list[int] = []
        total = 0.0
        for i in sorted(tests, key=lambda i: (-near[i], baseline.seconds[i])):
            if chosen and total + baseline.seconds[i] > self.most_seconds:
                break
            chosen.append(i)
            total += baseline.seconds[i]
        return chosen, 10 + 5 * total

    def _judge(self, mutant: Mutant, verdict: str) -> None:
        self.verdicts[mutant] = verdict
        if verdict not in (KILLED, LATE):
            self.tell(f"{verdict}: {mutant.file} {mutant.function}: {mutant.text}")

    def _try(self, mutant: Mutant, items: Sequence[pytest.Item], seconds: float) -> NoReturn:
        """In the forked process: 1 as soon as a test fails, 0 when none does."""
        _quiet()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        path = str(self.paths[mutant.file])
        code = mutated(self.sources[mutant.file], path, mutant)
        if not _put(path, {mutant.function: code}):
            os._exit(NOT_LOADED)
        try:
            for item in items:
                _run(item)
                if self.failures:
                    break
        except BaseException:  # whatever gets out of a test's own run
            os._exit(1)
        os._exit(1 if self.failures else 0)


def _put(path: str, codes: dict[str, CodeType]) -> set[str]:
    """Change functions of a file in memory, wherever they are known; the names of those found."""
    found = set()
    gc.unfreeze()  # what conftest hides from the collector
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == path:
            name = function.__code__.co_qualname
            if name in codes:
                function.__code__ = codes[name]
                found.add(name)
    return found


def _words(path: str) -> set[str]:
    return set(re.split(r"[/._]", path))


def _run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _quiet() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
