"""The command, run in this process, as the core's commands are tested."""

from __future__ import annotations

from proofs_tests.commands.conftest import command as command
from proofs_tests.commands.conftest import planned as planned
from proofs_tests.commands.conftest import plans_made as plans_made
