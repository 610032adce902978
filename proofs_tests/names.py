"""The names of the package's classes and aliases: what stands twice, and what is no noun."""

from __future__ import annotations

from proofs_tests.structure import modules, syntax


def names_twice() -> dict[str, list[str]]:
    """Public classes of one name in the package, and aliases of one name in a room, with places.

    A room is a folder of the package; the files beside the rooms are one. An alias is what a module
    assigns to a capitalised name, type variables among them.
    """
    found: dict[str, list[str]] = {}
    for module in modules():
        room = module.partition(".")[0] if "." in module else "the door"
        for name, is_class in syntax(module).public:
            key = name if is_class else f"{room}: {name}"
            found.setdefault(key, []).append(module)
            if is_class:
                found.setdefault(f"{room}: {name}", []).append(module)
    return {
        key: places
        for key, places in sorted(found.items())
        if len(places) > 1 and key.partition(": ")[2] not in found
    }


def participles() -> dict[str, list[str]]:
    """Public classes that are called by a bare participle, which names no thing."""
    found: dict[str, list[str]] = {}
    for module in modules():
        for name, is_class in syntax(module).public:
            is_one_word = name[1:].islower()
            if is_class and is_one_word and (name.endswith("ed") or name in _IRREGULAR):
                found.setdefault(name, []).append(module)
    return found


_IRREGULAR = {
    "Built",
    "Cut",
    "Drawn",
    "Found",
    "Given",
    "Held",
    "Kept",
    "Known",
    "Look",
    "Made",
    "Met",
    "Run",
    "Seen",
    "Sent",
    "Set",
    "Shown",
    "Split",
    "Taken",
    "Told",
}
