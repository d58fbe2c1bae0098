"""A JSON document becomes lines, each as it is written, or is refused with the place of the mistake."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker.sources.files import json_document
from esker.sources.files.json_document import NoDocument, write_lines

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def lines(document: str | bytes) -> list[str]:
    written = io.BytesIO()
    write_lines(io.BytesIO(document.encode() if isinstance(document, str) else document), written)
    return [line.decode() for line in written.getvalue().split(b"\n")[:-1]]


@pytest.fixture(params=[1 << 22, 3, 7])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read some bytes at a time: brackets, texts and escapes are cut anywhere."""
    monkeypatch.setattr(json_document, "_CHUNK", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("document", "found"),
    [
        ('[{"a": 1},\n {"b": "x]},\\"y"}]', ['{"a": 1}', '  {"b": "x]},\\"y"}']),
        ('{"a": [1,\r\n2]}\n', ['{"a": [1,  2]}']),
        ('\ufeff[{"é": 1.50}]', ['{"é": 1.50}']),
        (r'[{"a": "\\"}, {"b": "\\\""}]', [r'{"a": "\\"}', r' {"b": "\\\""}']),
        ('[{"a": {"b": [{"c": [[]]}]}}]', ['{"a": {"b": [{"c": [[]]}]}}']),
        # What is in an element is looked at later: it is one bad record.
        ('[{"a": 1], {"b": 2}, 5, "x"]', ['{"a": 1]', ' {"b": 2}', " 5", ' "x"']),
        ("[]", []),
        (" [ \n ] ", []),
        ("", []),
        (" \n", []),
    ],
)
def test_elements_are_lines(document: str, found: list[str]) -> None:
    assert lines(document) == found


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("document", "why"),
    [
        ('[{"a": 1}, {"b"', "ends in the middle, after 15 bytes"),
        ('[{"a": "x', "ends in the middle"),
        ('{"a": 1', "ends in the middle"),
        ("[", "ends in the middle"),
        ('[{"a": 1}] {"b": 2}', "something follows its end, at byte 11"),
        ('{"a": 1}{"b": 2}', "something follows its end, at byte 8"),
        ("[1,,2]", "an element is missing before ,"),
        ("[1, ]", "an element is missing before ]"),
        ('"text"', "neither a list nor an object"),
        ('[{"a": "x\ny"}]', "a text holds a line break, at byte 7"),
        ("[}]", "a bracket closes what none opened"),
    ],
)
def test_what_is_no_document_is_refused(document: str, why: str) -> None:
    with pytest.raises(NoDocument) as caught:
        lines(document)
    assert why in str(caught.value)


@settings(max_examples=60)
@given(st.lists(_VALUES, max_size=6), st.sampled_from([None, 1]), st.booleans(), st.integers(3, 40))
def test_any_list_comes_back(values: list[object], indent: int | None, ascii: bool, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_document, "_CHUNK", size)
        found = lines(json.dumps(values, indent=indent, ensure_ascii=ascii).encode(errors="surrogatepass"))
    assert [json.loads(line) for line in found] == values
