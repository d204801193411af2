"""The head maps against the published files that they are facts of."""

import ast
import re
from pathlib import Path

import pytest
from test_real_sources import WHEEL

from cxrspec.definition import WheelSource
from cxrspec.errors import SourceError
from cxrspec.predictions.head_maps import HEAD_MAPS
from cxrspec.sources import Store, open_file

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The labels of each set of weights, as they stand in torchxrayvision's own models.py."""
    source = WheelSource(
        kind="wheel", package="torchxrayvision", version="1.5.7", sha256=WHEEL,
        files={"models": "torchxrayvision/models.py"}, licence="Apache-2.0", attribution="Cohen et al.",
    )  # fmt: skip
    try:
        store = Store(Path(tmp_path_factory.mktemp("cache")))
        text = open_file(source, "models", store, source_name="wheel").read().decode()
    except SourceError as error:
        if error.issues[0].code != "source-unreachable":
            raise
        pytest.skip(f"no package index with torchxrayvision 1.5.7 is reachable: {error}")
    entries = re.findall(r"model_urls\['([\w-]+)'\] = \{.*?\"labels\": (\[.*?\])", text, flags=re.DOTALL)
    return {name: ast.literal_eval(labels) for name, labels in entries}


def test_heads_of_torchxrayvision_are_those_of_its_weights(published: dict[str, list[str]]) -> None:
    """S9: names, order and blanks of every DenseNet of version 1.5.7."""
    ours = {name.removeprefix("torchxrayvision-"): list(heads) for name, heads in HEAD_MAPS.items() if "xray" in name}
    assert ours == {name: published[name] for name in ours}
