"""Where each page stands: sections in the head of a page, groups of pages beside it.

A page of ``docs/`` that nothing here names is taken up all the same: at the end of its folder's
section, or in a section of its own where its folder is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Group:
    """Pages under one heading: paths in the repository, or patterns of them, in this order."""

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A section: the folder it has in the site, its title, what it is, and its groups."""

    key: str
    title: str
    text: str
    groups: tuple[Group, ...]


def _of(folder: str, words: str) -> tuple[str, ...]:
    return tuple(f"docs/{folder}/{word}.md" for word in words.split())


TUTORIALS = _of("tutorials", "ci odd-cluster researcher model-owner")
SECTIONS = (
    Section(
        "tutorials",
        "Tutorials",
        "Four ways to begin, ten minutes each, from an empty folder.",
        (Group("", (*TUTORIALS, "docs/tutorials/*")),),
    ),
    Section(
        "guide",
        "Guide",
        "What the words mean, and how each thing is done.",
        (
            Group("Understand", _of("guide", "install design which-bubble idle papers formal faq")),
            Group("A note", ("docs/paper/*",)),
            Group("Verify", _of("guide", "verifying hangs traces")),
            Group("The rules, one by one", ("docs/rules/*",)),
            Group("Solve and plan", _of("guide", "solving planning costs")),
            Group("Run", _of("guide", "replaying models hand-over")),
            Group("Look", _of("guide", "pages")),
            Group("Your own", ("docs/own/cookbook.md", "docs/own/*")),
            Group("More", ("docs/guide/*",)),
        ),
    ),
    Section(
        "theorems",
        "Theorems",
        "What holds for all sizes that its hypotheses name, and what proves it.",
        (Group("", ("theorems/index.md",)),),
    ),
    Section(
        "catalogue",
        "Catalogue",
        "The published families of schedules, and what they cost.",
        (Group("", ("docs/catalogue/*",)),),
    ),
    Section(
        "reference",
        "Reference",
        "Names, files and formats.",
        (
            Group("", ("commands/index.md", "api/index.md")),
            Group("Formats", (*_of("formats", "problem plan schedule"), "docs/formats/*")),
            Group("What there is", ("docs/reference/*",)),
        ),
    ),
    Section(
        "measured",
        "Measured",
        "What commands have measured. Nobody edits these pages; each names the command.",
        (
            Group(
                "Verifying",
                _of(
                    "measured",
                    "verdicts pytorch-tables pytorch-tables-2.6 pytorch-tables-2.15 "
                    "semantics hangs",
                ),
            ),
            Group(
                "Solving and planning",
                _of(
                    "measured",
                    "optimality solvers solvers-plain solver-gaps solver-growth drawn-instances "
                    "practice",
                ),
            ),
            Group(
                "Costs and times",
                _of("measured", "cost-model features times pytorch-memory models traces"),
            ),
            Group(
                "Running",
                _of(
                    "measured",
                    "pytorch-training pytorch-training-2.15 pytorch-versions gpu-replays",
                ),
            ),
            Group(
                "Papers",
                ("docs/measured/proofs.md", "docs/measured/papers/*", "docs/measured/claims.md"),
            ),
            Group("More", ("docs/measured/*",)),
        ),
    ),
    Section(
        "project",
        "Project",
        "How it is made, and why it is as it is.",
        (Group("", ("CONTRIBUTING.md", "CHANGELOG.md", "docs/decisions/*")),),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placed:
    """A section with the pages that there are, group by group."""

    section: Section
    groups: tuple[Group, ...]


def placed(pages: Iterable[str]) -> tuple[Placed, ...]:
    """Every page once, where it stands; sections without pages are left out.

    >>> [each.section.title for each in placed(["docs/own/family.md", "docs/new/page.md"])]
    ['Guide', 'New']
    """
    left = sorted(pages)
    found = [_placed(section, left) for section in SECTIONS]
    folders = dict.fromkeys(PurePosixPath(page).parent.name for page in left)
    for folder in folders:
        pattern = (Group("", (f"*{folder}/*",)),)
        found.append(_placed(Section(folder, folder.capitalize(), "", pattern), left))
    return tuple(each for each in found if each.groups)


def _placed(section: Section, left: list[str]) -> Placed:
    """The section's pages, which are taken out of those that are left."""
    groups = [Group(group.title, _taken(group.pages, left)) for group in section.groups]
    return Placed(section, tuple(group for group in groups if group.pages))


def _taken(patterns: Sequence[str], left: list[str]) -> tuple[str, ...]:
    found = []
    for pattern in patterns:
        for page in [each for each in left if fnmatchcase(each, pattern)]:
            left.remove(page)
            found.append(page)
    return tuple(found)
