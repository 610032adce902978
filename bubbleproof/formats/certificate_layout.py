"""The keys of a certificate file by its kind; ``certificate_json`` tells their meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bubbleproof.formats.validation import Layout, Natural, Whole

ObjectiveName = Literal["makespan", "span_idle"]


class CertificateLayout(Layout):
    """What every certificate file says."""

    format: Literal["bubbleproof/certificate"]
    version: Literal[1]
    name: str = ""
    objective: ObjectiveName
    bound: Whole


class OneMachineLayout(CertificateLayout):
    """Tasks that run one at a time on a resource, between heads and tails."""

    kind: Literal["one-machine"]
    resource: str
    tasks: list[str]


class DrupLayout(CertificateLayout):
    """Lemmas, one text each, or all of them compressed; exactly one of the two."""

    kind: Literal["drup"]
    rank: Natural = 0
    lemmas: list[str] | None = None
    packed: str | None = None


LAYOUTS: dict[str, type[OneMachineLayout | DrupLayout]] = {
    "one-machine": OneMachineLayout,
    "drup": DrupLayout,
}


def certificate_schema() -> dict[str, object]:
    """The JSON schema of a certificate file."""
    either = Annotated[OneMachineLayout | DrupLayout, Field(discriminator="kind")]
    adapter: TypeAdapter[object] = TypeAdapter(either)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **adapter.json_schema(),
    }
