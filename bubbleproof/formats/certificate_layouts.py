"""The layouts of certificate files, one a kind; see ``formats.certificate_json``."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, Whole

FORMAT: Final = "bubbleproof/certificate"
VERSION: Final = 1
ObjectiveName = Literal["makespan", "span_idle"]
OneOrMore = Annotated[int, Field(ge=1, le=LARGEST)]


def head_content(kind: str, objective: str, bound: int, name: str) -> dict[str, object]:
    """The keys that stand first in a file.

    Raises ``UnusableInput`` for an objective or a bound that no file can name.
    """
    if abs(bound) > LARGEST:
        raise UnusableInput("bound", f"at most {LARGEST}", str(bound))
    if objective not in (known := get_args(ObjectiveName)):
        raise UnusableInput("objective", f"one of {', '.join(known)}", quoted(objective))
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "kind": kind,
        "objective": objective,
        "bound": bound,
    }


class CertificateLayout(Layout):
    """What every certificate file says."""

    format: Literal["bubbleproof/certificate"]
    version: Annotated[Literal[1], AS_WHOLE]
    name: str = ""
    objective: ObjectiveName
    bound: Whole


class OneMachineLayout(CertificateLayout):
    """Tasks that run one at a time on a resource, between heads and tails."""

    kind: Literal["one-machine"]
    resource: str
    tasks: list[str]


class OneStoreLayout(CertificateLayout):
    """What a resource can do before ``begin``, and in the last ``end`` ticks, as a store allows."""

    kind: Literal["one-store"]
    resource: str
    store: str
    begin: Natural
    end: Natural


class VolumeLayout(CertificateLayout):
    """What a store must hold, and for how long."""

    kind: Literal["volume"]
    store: str


class CrossingsLayout(CertificateLayout):
    """What a store must hold where forwards and backwards cross behind it."""

    kind: Literal["crossings"]
    store: str


class TariffLayout(Layout):
    """The prices of one resource or store: pairs of a tick and the price from there on."""

    of: str
    steps: list[Annotated[tuple[Natural, Natural], Field(strict=False)]]


class PricesLayout(CertificateLayout):
    """Prices of ticks of resources and of units of stores."""

    kind: Literal["prices"]
    resources: list[TariffLayout]
    stores: list[TariffLayout]


class WindowLayout(Layout):
    """Successive microbatches on some ranks, and the certificate of what they take alone."""

    count: OneOrMore
    ranks: list[str]
    times: OneOrMore = 1
    proof: dict[str, object]


class WindowsLayout(CertificateLayout):
    """What successive microbatches take alone, one window after another."""

    kind: Literal["windows"]
    first: str
    store: str
    windows: list[WindowLayout]


class DrupLayout(CertificateLayout):
    """Lemmas, one text each, or all of them compressed; exactly one of the two."""

    kind: Literal["drup"]
    rank: Natural = 0
    lemmas: list[str] | None = None
    packed: str | None = None


class CasesLayout(CertificateLayout):
    """One certificate for each case of choices left open (``formats.plans.cases_json``)."""

    kind: Literal["cases"]
    cases: list[dict[str, object] | None]


LAYOUTS: dict[str, type[CertificateLayout]] = {
    "one-machine": OneMachineLayout,
    "one-store": OneStoreLayout,
    "volume": VolumeLayout,
    "crossings": CrossingsLayout,
    "prices": PricesLayout,
    "drup": DrupLayout,
    "windows": WindowsLayout,
}
