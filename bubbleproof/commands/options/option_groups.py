"""Options that belong together: declared once, taken by any command, shown under one heading.

A group is a frozen dataclass derived from ``OptionGroup``; its fields are annotated as typer's
parameters are, and a ``bool`` is a flag. ``@runs`` lets a command take whole groups as parameters,
and typer see their fields, which typer does not do by itself (nor does a library on top of it:
pydantic-typer writes ``--group.field``). ``HeadedCommand`` prints the options of each group under
its ``HEADING``, which typer does in boxes only. An option that names what its command writes is
marked with a ``Target``; whether that can be written is asked before the command begins. Wherever
a file is read, ``-`` is the standard input.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import MISSING, fields
from functools import cache, cached_property, wraps
from importlib import import_module
from typing import (
    Annotated,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from typer import BadParameter, Context, Option
from typer.core import TyperCommand
from typer.models import ParameterInfo

from bubbleproof.commands.options.targets import (
    Ends,
    Target,
    copy_of_standard_input,
    require_targets,
)
from bubbleproof.declared import declared
from bubbleproof.former_names import former_of, warn_of
from bubbleproof.solvers.search_limits import SearchLimits

STANDARD_INPUT = "-"
Limits = TypeVar("Limits", bound=SearchLimits)


class OptionGroup:
    """Options under one ``HEADING`` of a command's help, a field each; a group may hold groups."""

    __slots__ = ()
    HEADING: ClassVar[str | None] = None

    def leave_out(self, about: str, *names: str) -> None:
        """Raise ``ValueError`` for an option that was given though it has no meaning there.

        Parameters
        ----------
        about
            What has no use for it, such as "a plan".
        names
            Fields of the group.
        """
        for field in fields(self):  # type: ignore[arg-type]  # every group is a dataclass
            if field.name in names and getattr(self, field.name) != field.default:
                require_meaning(_spelled(field.name), about)


def require_meaning(option: str, about: str, *, is_given: bool = True) -> None:
    """Raise ``ValueError`` for an option that was given though it has no meaning there."""
    if is_given:
        raise ValueError(f"{option} has no meaning for {about}; leave it out")


def seconds_given(given: str | float) -> float:
    """The seconds of a plain number, or of a text such as ``500ms``, ``10s`` or ``2min``.

    Raises ``BadParameter``, which names the option, for what is neither.
    """
    from bubbleproof.formats.errors import UnusableInput
    from bubbleproof.formats.values import TIME, number

    try:
        return float(given)
    except ValueError:
        pass
    try:
        return float(number(given, TIME))
    except UnusableInput as error:
        raise BadParameter(str(error)) from None


def seconds_option(about: str) -> ParameterInfo:
    """An option that takes a time."""
    return Option(parser=seconds_given, metavar="TIME", help=f"{about}: 10s, 2min, or seconds.")  # type: ignore[no-any-return]  # typer says Any


class GivenOptions(Generic[Limits]):
    """What a command line gives of declared options; what a file may say is None without."""

    def __init__(self, of: type[Limits], values: Mapping[str, object]) -> None:
        self.of, self.values = of, values

    def options(self, file: object = None, **more: object) -> Limits:
        """The options: what is given, else what a ``file`` says, else the defaults."""
        from bubbleproof.formats.values import bytes_of

        told = dict(self.values)
        for each in declared(self.of):
            if each.said.unit == "bytes" and isinstance(text := told.get(each.name), str):
                told[each.name] = bytes_of(text)
        return self.of.asked(told, file, **more)

    def leave_out(self, about: str, *names: str) -> None:
        """Raise ``ValueError`` for an option that was given though it has no meaning there."""
        for each in declared(self.of):
            is_given = each.name in names and self.values.get(each.name) != each.default
            require_meaning(_spelled(each.name), about, is_given=is_given)


def _declared_options(options: type[SearchLimits]) -> Iterator[inspect.Parameter]:
    """OptionNote options as typer takes them."""
    for each in declared(options):
        kind, info = each.kind, Option(help=each.said.help)
        default = None if each.said.is_in_file else each.default
        if each.said.unit == "seconds":
            info = seconds_option(each.said.help)
        if each.said.unit == "bytes" or get_origin(kind) is Literal:
            kind = str
        info.rich_help_panel = options.HEADING
        if kind is bool:
            info.param_decls = (_spelled(each.name),)
        kind = kind | None if default is None else kind
        keyword, hint = inspect.Parameter.KEYWORD_ONLY, Annotated[kind, info, *each.marks]
        yield inspect.Parameter(each.name, keyword, default=default, annotation=hint)


def _spelled(name: str) -> str:
    """An option as people write it."""
    return f"--{name.replace('_', '-')}"


def runs(work: str, options: str = "") -> Callable[[Callable[..., None]], Callable[..., int]]:
    """A command with the decorated function's name, help and parameters, done by ``work``.

    ``work`` is ``MODULE.FUNCTION`` within ``bubbleproof``, loaded when the command runs, and
    ``options`` a module that has what the annotations name, loaded with the parameters.
    It is given every parameter under the parameter's own name; one that is a group is made of the
    options that are its fields. All that is looked at when typer asks for the parameters, of the
    command that is named; a ``ValueError`` is raised then where two options have one name.
    """
    module, _, function = work.rpartition(".")

    def made(command: Callable[..., None]) -> Callable[..., int]:
        known = vars(import_module(f"bubbleproof.{options}")) if options else None
        hints = get_type_hints(command, localns=known, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if _is_group(hints[name]):
                parameters += _options(hints[name])
            else:
                keyword = inspect.Parameter.KEYWORD_ONLY
                parameters.append(parameter.replace(kind=keyword, annotation=hints[name]))

        @wraps(command)
        def run(**given: object) -> int:
            given = _by_new_names(former, given)
            given = {
                name: value if name in marks else _from_standard_input(value)
                for name, value in given.items()
            }
            _require_targets(marks, given)
            values = {name: _value(name, hints[name], given) for name in own_names}
            found = getattr(import_module(f"bubbleproof.{module}"), function)
            status: int = found(**values)
            return status

        own_names = list(inspect.signature(command).parameters)
        former = {p.name: old for p in parameters if (old := former_of(get_args(p.annotation)))}
        parameters += [_hidden(old) for old in former.values()]
        marks = {p.name: found for p in parameters if (found := marks_of(p.annotation))}
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
        return run

    return lambda command: _LateCommand(command, made)


class _LateCommand:
    """A command whose parameters are looked at when they are asked for."""

    def __init__(
        self,
        command: Callable[..., None],
        made: Callable[[Callable[..., None]], Callable[..., int]],
    ) -> None:
        self.__name__, self.__doc__ = command.__name__, command.__doc__
        self._command, self._made = command, made

    @cached_property
    def _run(self) -> Callable[..., int]:
        return self._made(self._command)

    def __getattr__(self, name: str) -> object:
        return getattr(self._run, name)

    def __call__(self, **given: object) -> int:
        return self._run(**given)


def _hidden(name: str) -> inspect.Parameter:
    """An option that no help shows."""
    hint = Annotated[str | None, Option(hidden=True)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)


def _by_new_names(former: Mapping[str, str], given: Mapping[str, object]) -> dict[str, object]:
    """What is given under a former name under the new one. Raises ``ValueError`` for both."""
    found = dict(given)
    for new, old in former.items():
        if (value := found.pop(old)) is not None:
            warn_of(_spelled(old), _spelled(new), has_both=found[new] is not None)
            found[new] = value
    return found


def marks_of(hint: object) -> tuple[Target | Ends, ...]:
    """The marks of an annotated option."""
    return tuple(each for each in get_args(hint) if isinstance(each, Target | Ends))


def _from_standard_input(value: object) -> object:
    """What was given, the path of a copy of the standard input in place of each ``-``."""
    if value == STANDARD_INPUT:
        return copy_of_standard_input()
    return [*map(_from_standard_input, value)] if isinstance(value, list) else value


def _require_targets(
    marks: Mapping[str, tuple[Target | Ends, ...]], given: Mapping[str, object]
) -> None:
    """Raise ``ValueError`` where what is given to a marked option cannot be written.

    Of processes that torchrun has started the first alone writes, and asks by itself.
    """
    asked = [
        (mark, str(each))
        for name, found in marks.items()
        for each in (given[name] if isinstance(given[name], list) else [given[name]])  # type: ignore[attr-defined]  # a list
        for mark in found
        if each is not None
    ]
    for mark, target in asked:
        if isinstance(mark, Ends):
            mark.require(target)
    targets = [(mark, target) for mark, target in asked if isinstance(mark, Target)]
    if targets and not given.get("torchrun"):
        require_targets(targets)


@cache
def _hints(of: type[OptionGroup]) -> Mapping[str, type]:
    """The annotations of a group's fields."""
    return get_type_hints(of, include_extras=True)


def _is_group(hint: object) -> bool:
    is_group = isinstance(hint, type) and issubclass(hint, OptionGroup)
    return is_group or get_origin(hint) is GivenOptions


def _value(name: str, hint: type, given: Mapping[str, object]) -> object:
    """What was given under the name, or the group that is made of what was given."""
    if not _is_group(hint):
        return given[name]
    if get_origin(hint) is GivenOptions:
        [of] = get_args(hint)
        return GivenOptions(of, {each.name: given[each.name] for each in declared(of)})
    hints = _hints(hint)
    return hint(**{f.name: _value(f.name, hints[f.name], given) for f in fields(hint)})


def _options(group: type[OptionGroup]) -> Iterator[inspect.Parameter]:
    if get_origin(group) is GivenOptions:
        yield from _declared_options(get_args(group)[0])
        return
    hints = _hints(group)  # type: ignore[arg-type]  # every class is hashable
    for field in fields(group):  # type: ignore[arg-type]  # every group is a dataclass
        if _is_group(hints[field.name]):
            yield from _options(hints[field.name])
            continue
        kind, info, *marks = get_args(hints[field.name])
        headed: ParameterInfo = copy(info)
        headed.rich_help_panel = group.HEADING
        if kind is bool and info.default is ...:  # a flag without a name of its own
            headed.param_decls = (_spelled(field.name),)
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[kind, headed, *marks],
        )


class _Formatter(Protocol):
    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class HeadedCommand(TyperCommand):
    """A command whose help has a section for each group, after its other options."""

    def format_options(  # type: ignore[override]  # typer has no other contexts
        self, ctx: Context, formatter: _Formatter
    ) -> None:
        """Write the sections, in the order in which the command takes the groups."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                is_argument = parameter.param_type_name == "argument"
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault("Arguments" if is_argument else heading, []).append(row)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
