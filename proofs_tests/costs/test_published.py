"""Parameters against published counts: the numbers of the weights' files, to the last digit."""

from __future__ import annotations

import pytest

from bubbleproof.costs import Deployment, KnownModel, known_models, parameters
from bubbleproof.costs.weights import layer_weights

PUBLISHED = [known for known in known_models().values() if known.published is not None]
LEAST = 20
ONE = Deployment()


def test_twenty_models_or_more_have_a_published_count() -> None:
    assert len({known.published for known in PUBLISHED}) >= LEAST


@pytest.mark.parametrize("known", PUBLISHED, ids=lambda known: known.name)
def test_the_count_is_the_published_one(known: KnownModel) -> None:
    found = parameters(known.model)
    assert found.total == known.published
    layers = sum(count * layer_weights(kind, ONE).total for kind, count in known.model.layer_runs)
    assert found.total == layers + found.embedding + found.head


@pytest.mark.parametrize(
    "changes", [{"layers": 1}, {"vocabulary": 1}, {"feed_forward": 1}, {"hidden": None}]
)
def test_another_shape_has_another_count(changes: dict[str, int | None]) -> None:
    """A negative control: the counts depend on each number of the shape."""
    for known in PUBLISHED:
        model = known.model
        if model.runs or not model.feed_forward:  # its kinds tell some of them
            continue
        name, more = next(iter(changes.items()))
        step = model.heads if more is None else more
        other = model.with_changes(**{name: getattr(model, name) + step})
        assert parameters(other).total > (known.published or 0)


def test_every_model_tells_its_source() -> None:
    assert all(
        len(known.source) > 10 and known.sequence >= 1024 for known in known_models().values()
    )


@pytest.mark.parametrize(
    ("name", "billions"),
    # Brown et al. 2020, Table 2.1, prints sizes to two or three digits and counts a vocabulary and
    # positions; BPipe and PipeMesh name their models so.
    [
        ("gpt3-2.7b", 2.7),
        ("gpt3-6.7b", 6.7),
        ("gpt3-13b", 13),
        ("gpt3-175b", 175),
        ("gpt3-96b", 96),
        ("gpt3-134b", 134),
        ("pipemesh-gpt3-58b", 58),
        ("pipemesh-llama2-55b", 55),
    ],
)
def test_rounded_sizes_are_near(name: str, billions: float) -> None:
    total = float(parameters(known_models()[name].model).total)
    assert total == pytest.approx(billions * 1e9, rel=0.02)
