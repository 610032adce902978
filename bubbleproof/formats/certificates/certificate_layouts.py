"""The layouts of certificate files, one a kind; see ``formats.certificate_json``."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypedDict

from pydantic import Field

from bubbleproof.formats.errors import UnusableInput, quoted
from bubbleproof.formats.sizes import LARGEST
from bubbleproof.formats.validation import AS_WHOLE, Layout, Natural, Whole

FORMAT: Final = "bubbleproof/certificate"
VERSION: Final = 1
HEAD = ("format", "version", "name", "kind")  # the keys that stand first in a file
ObjectiveName = Literal["makespan", "span_idle"]
OneOrMore = Annotated[int, Field(ge=1, le=LARGEST)]


def objective_name(text: str) -> ObjectiveName:
    """The objective of that name. Raises ``UnusableInput`` for one that no file can name.

    Parameters
    ----------
    text
        The name as a certificate has it.
    """
    known: tuple[ObjectiveName, ...] = ("makespan", "span_idle")
    for name in known:
        if name == text:
            return name
    raise UnusableInput("objective", f"one of {', '.join(known)}", quoted(text))


class CertificateHead(TypedDict):
    """The values of ``CertificateLayout``."""

    format: Literal["bubbleproof/certificate"]
    version: Literal[1]
    name: str
    objective: ObjectiveName
    bound: int


class CertificateLayout(Layout):
    """What every certificate file says."""

    format: Literal["bubbleproof/certificate"]
    version: Annotated[Literal[1], AS_WHOLE]
    name: str = ""
    objective: ObjectiveName
    bound: Whole

    def content(self) -> dict[str, object]:
        """What a file holds: the keys that were given, those of ``HEAD`` first."""
        given = self.model_dump(exclude_unset=True)
        return {**{key: given[key] for key in HEAD}, **given}


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


DirectLayout = OneMachineLayout | OneStoreLayout | VolumeLayout | PricesLayout | DrupLayout
DIRECT: dict[str, type[DirectLayout]] = {
    "one-machine": OneMachineLayout,
    "one-store": OneStoreLayout,
    "volume": VolumeLayout,
    "prices": PricesLayout,
    "drup": DrupLayout,
}
LAYOUTS: dict[str, type[DirectLayout | WindowsLayout]] = {**DIRECT, "windows": WindowsLayout}
