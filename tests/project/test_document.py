"""Laying maps over and under each other, with places that stay right."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import InvalidProject
from esker.project import load_project
from esker.project.document import Document, Mark, read_document

KEYS = st.sampled_from(["a", "b", "c", "type"])
VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=4)


def laid(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    document = Document("f", {"onto": deepcopy(lower), "upper": deepcopy(upper)})
    document.overlay(("onto",), ("upper",))
    assert document.data["upper"] == upper
    found: dict[str, Any] = document.data["onto"]
    return found


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if isinstance(value, dict) and value:
        return {
            place: leaf for key, inner in value.items() for place, leaf in leaves(inner, (*path, key)).items()
        }
    return {path: value}


@given(MAPS)
def test_laying_nothing_or_itself_over_a_map_changes_nothing(lower: dict[str, Any]) -> None:
    """An empty environment is no environment."""
    assert laid(lower, {}) == lower
    assert laid(lower, lower) == lower
    assert laid({}, lower) == lower


@given(MAPS, MAPS)
def test_every_upper_value_wins(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    """Whatever an environment says holds afterwards."""
    document = Document("f", laid(lower, upper))
    for path, value in leaves(upper).items():
        if value != {}:
            assert document.at(path) == value


@given(MAPS, MAPS)
def test_laying_over_twice_is_laying_over_once(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    """The result depends on the file only."""
    once = laid(lower, upper)
    assert laid(once, upper) == once


@given(MAPS, MAPS)
def test_underlaid_values_fill_gaps_only(own: dict[str, Any], default: dict[str, Any]) -> None:
    """What a pipeline says itself is never changed by a default."""
    document = Document("f", {"onto": deepcopy(own), "lower": deepcopy(default)})
    document.underlay(("onto",), ("lower",))
    result = Document("f", document.data["onto"])
    for path, value in leaves(own).items():
        if value != {}:
            assert result.at(path) == value
    assert set(result.data) == set(own) | set(default)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ({"c": {"type": "x", "a": 1}}, {"c": {"type": "x", "b": 2}}, {"c": {"type": "x", "a": 1, "b": 2}}),
        ({"c": {"type": "x", "a": 1}}, {"c": {"b": 2}}, {"c": {"type": "x", "a": 1, "b": 2}}),
        ({"c": {"type": "x", "a": 1}}, {"c": {"type": "y", "b": 2}}, {"c": {"type": "y", "b": 2}}),
        ({"c": [1, 2]}, {"c": [3]}, {"c": [3]}),
        ({"c": {"a": 1}}, {"c": None}, {"c": None}),
        ({"c": 1}, {"c": {"a": 1}}, {"c": {"a": 1}}),
    ],
)
def test_maps_merge_and_another_type_replaces(
    lower: dict[str, Any], upper: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Maps are merged key by key; one with another type replaces the one below; lists are replaced."""
    assert laid(lower, upper) == expected


def test_every_value_knows_its_place(tmp_path: Path) -> None:
    """Keys and items are found by line and column, block and flow style alike."""
    file = tmp_path / "f.yml"
    file.write_text("a: 1\nb:\n  c: [x, y]\n  5: {d: z}\n")
    document = read_document(file, "f.yml")
    assert document.data == {"a": 1, "b": {"c": ["x", "y"], "5": {"d": "z"}}}
    assert document.marks == {
        ("a",): Mark(1, 1),
        ("b",): Mark(2, 1),
        ("b", "c"): Mark(3, 3),
        ("b", "c", 0): Mark(3, 7),
        ("b", "c", 1): Mark(3, 10),
        ("b", "5"): Mark(4, 3),
        ("b", "5", "d"): Mark(4, 7),
    }
    assert document.mark(("b", "c", 7)) == Mark(3, 3)
    assert document.mark(("nothing",)) is None


PROJECT = """\
project: shop
catalog: {type: sqlite, path: c.db}
defaults:
  format_version: 3
  source: {type: files, format: csv, delimiter: ;}
environments:
  prod:
    catalog: {type: jdbc, url: "jdbc:postgresql://db/lake", warehouse: /lake}
    pipelines:
      sales: {every: 1h}
  test:
    catalog: {path: t.db}
pipelines:
  sales: {source: {path: a}, table: s.a, every: 15m}
  rates: {source: {path: b, delimiter: ","}, table: s.b, format_version: 2}
"""


def test_environments_and_defaults_in_a_project(tmp_path: Path) -> None:
    """An environment changes what it names; defaults fill in; a pipeline's own word wins."""
    (tmp_path / "esker.yml").write_text(PROJECT)
    base, prod, test = (load_project(tmp_path, env) for env in (None, "prod", "test"))
    assert [project.catalog.type for project in (base, prod, test)] == ["sqlite", "jdbc", "sqlite"]
    assert [getattr(project.catalog, "path", None) for project in (base, prod, test)] == [
        "c.db",
        None,
        "t.db",
    ]
    assert [str(project.pipeline("sales").every) for project in (base, prod)] == ["0:15:00", "1:00:00"]
    assert prod.pipeline("sales").table == "s.a"
    assert (base.environment, prod.environment) == (None, "prod")
    assert [base.pipeline(name).format_version for name in ("sales", "rates")] == [3, 2]
    sources = [base.pipeline(name).source for name in ("sales", "rates")]
    assert [source.model_dump()["delimiter"] for source in sources] == [";", ","]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("{every: 1h}", "{evry: 1h}"),
            'esker.yml:10:15: pipelines.sales.evry: unknown key "evry"; did you mean "every"?',
        ),
        (("/lake}", "/lake, path: x}"), 'esker.yml:8:79: catalog.path: unknown key "path"; known keys:'),
        (
            ("    catalog: {type: jdbc", "    catlog: {type: jdbc"),
            'esker.yml:8:5: catlog: unknown key "catlog"; did you mean "catalog"?',
        ),
        (
            ("  prod:\n", "  prod:\n    project: mart\n"),
            'esker.yml:8:5: environments.prod.project: key "project" is the same in',
        ),
        (
            ("  prod:\n", "  prod:\n    environments: {prod: {}}\n"),
            'esker.yml:8:5: environments.prod.environments: key "environments" is',
        ),
    ],
)
def test_a_mistake_in_an_environment_points_into_it(
    tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    """The place of an error is where the wrong text stands, not where it was merged to."""
    (tmp_path / "esker.yml").write_text(PROJECT.replace(*change))
    with pytest.raises(InvalidProject) as caught:
        load_project(tmp_path, "prod")
    assert [str(problem)[: len(expected)] for problem in caught.value.problems] == [expected]
