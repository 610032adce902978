"""The commands run where the system lacks what Linux has, and no file asks for that by itself."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from multiprocessing import context, resource_tracker
from pathlib import Path

import pytest

from bubbleproof.parallel import open_executor, run_all
from bubbleproof.platforms import ask_to_end, held_back, installed_bytes, let_through, num_cores
from bubbleproof.reference_exec.drivers.gloo_server import server_context, start_server, stop_server
from bubbleproof.reference_exec.evidence.machine_versions import this_machine
from proofs_tests.commands.conftest import Run, command
from proofs_tests.commands.test_defaults import GIVEN, marked, prepare
from proofs_tests.patience import PATIENCE
from proofs_tests.sized import sized
from proofs_tests.structure import files

__all__ = ["command"]

# What macOS or Windows lack; of ``socket`` what Wire sets where it is there.
LACKING = {
    os: (
        "sched_getaffinity", "sched_setaffinity", "sysconf", "fork", "forkpty", "register_at_fork",
        "getloadavg", "getuid", "geteuid", "setsid", "getpgid", "getpgrp", "killpg", "uname",
        "statvfs", "fchmod", "fchown", "chown", "mkfifo", "pipe2", "memfd_create", "eventfd",
        "waitid", "wait3", "wait4", "WNOHANG", "posix_spawn", "posix_fadvise", "posix_fallocate",
        "sendfile", "splice", "copy_file_range", "pread", "pwrite", "nice", "openpty", "ttyname",
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_TMPFILE", "O_PATH",
    ),
    signal: (
        "pthread_sigmask", "pthread_kill", "sigwait", "sigtimedwait", "sigpending", "setitimer",
        "alarm", "pause", "siginterrupt", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK", "SIGKILL",
        "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGCONT",
        "SIGPIPE", "SIGTSTP", "SIGWINCH",
    ),
    select: ("epoll", "poll", "kqueue"),
    socket: (
        "AF_UNIX", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT", "SCM_RIGHTS",
    ),
    context: ("ForkServerContext", "ForkContext", "ForkServerProcess"),
    time: ("clock_gettime", "CLOCK_MONOTONIC", "pthread_getcpuclockid", "tzset"),
}  # fmt: skip
MODULES = (
    "fcntl",
    "resource",
    "pwd",
    "grp",
    "termios",
    "tty",
    "pty",
    "syslog",
    "posix",
    "readline",
)
NAMES = {name for names in LACKING.values() for name in names}
WORDS = re.compile(
    rf"\b({'|'.join(NAMES)})\b|\b(import|from)\s+({'|'.join(MODULES)})\b|/proc/|/dev/"
)
ASKED_FOR = {  # where else than in platforms.py, and why that does no harm
    "reference_exec/drivers/gloo_server.py": {"ForkServerContext"},  # a type, for the checker
}


def asked_for(source: str) -> set[str]:
    """The names of a file's code that not every system has."""
    found: set[str] = set()
    if not WORDS.search(source):  # most files, which need not be parsed
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found |= {node.attr} & NAMES
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} & NAMES
            found |= {str(node.module).partition(".")[0]} & set(MODULES)
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names} & set(MODULES)
        elif isinstance(node, ast.Constant) and str(node.value).startswith(("/proc/", "/dev/")):
            found.add(str(node.value))
    return found


def test_what_not_every_system_has_is_asked_for_in_one_place() -> None:
    found = {
        name: names
        for name, path in files().items()
        if path.name != "platforms.py" and (names := asked_for(path.read_text("utf-8")))
    }
    assert found == ASKED_FOR


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import os\nlen(os.sched_getaffinity(0))", "sched_getaffinity"),
        ("from signal import SIGKILL", "SIGKILL"),
        ("import fcntl", "fcntl"),
        ("from resource import getrusage", "resource"),
        ("open('/proc/meminfo')", "/proc/meminfo"),
    ],
)
def test_a_file_that_asks_by_itself_is_noticed(source: str, name: str) -> None:
    assert asked_for(source) == {name}


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process, with all that deleted which not every system has.

    What Python's library has taken note of is changed too; what it, torch and pytest use stays.
    """
    used_by_others = {
        "O_CLOEXEC",
        "O_NOFOLLOW",
        "O_NONBLOCK",
        "O_DIRECTORY",
        "WNOHANG",
        "AF_UNIX",
        "SCM_RIGHTS",
        "epoll",
        "poll",
        "SIGKILL",
        "fork",
        "uname",
        "CLOCK_MONOTONIC",
        "clock_gettime",
        "setsid",
        "getuid",
        "register_at_fork",
    }
    for module, names in LACKING.items():
        for name in set(names) - used_by_others:
            monkeypatch.delattr(module, name, raising=False)
    monkeypatch.setattr(resource_tracker, "_HAVE_SIGMASK", False)
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    for method in ("fork", "forkserver"):
        monkeypatch.delitem(context._concrete_contexts, method)  # type: ignore[attr-defined]  # Python's own table


@pytest.mark.usefixtures("_elsewhere")
def test_the_machine_is_told_as_far_as_it_is_known() -> None:
    assert num_cores() == os.cpu_count()
    assert installed_bytes() == 0
    machine = this_machine()
    assert machine.cores == os.cpu_count()
    assert ", unknown memory; python " in str(machine)


def test_the_machine_is_told_here() -> None:
    assert num_cores() >= 1
    assert (installed_bytes() > 0) == hasattr(os, "sysconf")


@pytest.mark.usefixtures("_elsewhere")
def test_signals_that_cannot_be_held_back_come() -> None:
    let_through([signal.SIGTERM])
    with held_back(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("name", ["posix", "nt"])
def test_a_program_ends_that_is_asked_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(waits, stderr=subprocess.DEVNULL)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("bubbleproof.platforms.os.name", name)
            ask_to_end(process)
        assert process.wait(PATIENCE) != 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("_elsewhere")
def test_processes_are_started_anew_where_no_server_forks_them() -> None:
    start_server()
    assert server_context().get_start_method() == "spawn"
    stop_server()
    with open_executor(2) as executor:
        assert run_all(executor, abs, [-1, 2]) == [1, 2]


# gloo starts processes anew there, each of which loads torch
COMMANDS = [name for name in GIVEN if name not in sized(("run", "bench"), full=("bench",))]


@pytest.mark.sweep
@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("name", map(marked, COMMANDS))
def test_commands_run_there(
    command: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
) -> None:
    words, told = prepare(name, monkeypatch, tmp_path)
    if name == "pareto":
        words = (*words, "--workers", "1")  # more are tried above
    if name == "replay":
        words = (*words, "-o", "r.html", "-o", "r.json")
    answer = command(name, *words)
    assert answer.status == 0, answer.err
    assert told in answer.out
    if name == "replay":
        assert Path("r.html").exists()
        assert '"memory_bytes": 0' in Path("r.json").read_text()
