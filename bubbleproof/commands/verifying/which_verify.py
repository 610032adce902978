"""Which ``verify`` the words ask for: of one schedule, of a plan, or of several files.

Each is loaded when it is asked for: a family's schedule is verified without a reader of files.
"""

from __future__ import annotations

from pathlib import Path

from bubbleproof.commands.options.shared_options import VerifyRequest
from bubbleproof.commands.verifying.schedule_words import is_many


def run_verify_any(schedule: list[str], request: VerifyRequest) -> int:
    """Verify a schedule, or a plan where a plan is named, or several schedules."""
    if is_many(schedule, request):
        from bubbleproof.commands.verifying.verify_many import run_verify_many

        return run_verify_many(schedule, request)
    is_file = Path(schedule[0]).suffix in (".json", ".toml") or Path(schedule[0]).is_dir()
    if len(schedule) == 1 and is_file and not request.spec:
        from bubbleproof.commands.planning.verify_plan import is_plan, run_verify_plan

        if is_plan(schedule[0], request.certificate):
            return run_verify_plan(schedule[0], request)
    from bubbleproof.commands.verify import run_verify

    return run_verify(schedule, request)
