"""A pipeline that names a contract says all that the contract says."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import InvalidProject
from esker.project import Project, load_project

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.2.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, primaryKey: true}
      - {name: at, logicalType: timestamp, partitioned: true, customProperties: [{property: partitionTransform, value: day}]}
      - {name: total, logicalType: number, physicalType: "decimal(12,2)", description: In euros}
    customProperties:
      - {property: tableProperties, value: {a: b, c: d}}
"""  # noqa: E501


def load(tmp_path: Path, pipeline: str, contract: str = CONTRACT) -> Project:
    (tmp_path / "contracts").mkdir(exist_ok=True)
    (tmp_path / "contracts/orders.odcs.yaml").write_text(contract)
    lines = "".join(f"    {line}\n" for line in pipeline.splitlines())
    (tmp_path / "esker.yml").write_text(
        "project: shop\npipelines:\n  orders:\n    table: shop.orders\n"
        "    source: {type: files, path: 'in/*.csv', format: csv}\n"
        "    contract: contracts/orders.odcs.yaml\n" + lines
    )
    return load_project(tmp_path)


def mistakes(tmp_path: Path, pipeline: str, contract: str = CONTRACT) -> list[str]:
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, pipeline, contract)
    return [str(problem) for problem in caught.value.problems]


def test_what_a_contract_says(tmp_path: Path) -> None:
    project = load(tmp_path, "properties: {a: x}")
    pipeline = project.pipeline("orders")
    assert [(c.name, str(c.type), c.required, c.doc) for c in pipeline.declared_columns()] == [
        ("id", "string", True, None),
        ("at", "timestamp", False, None),
        ("total", "decimal(12,2)", False, "In euros"),
    ]
    assert pipeline.partition_by == ["day(at)"]
    assert pipeline.properties == {"a": "x", "c": "d"}
    assert (pipeline.key, pipeline.evolution, pipeline.quarantines) == ([], "freeze", True)
    contract = project.contract("orders")
    assert contract is not None
    assert contract.version == "1.2.0"


def test_the_primary_key_is_the_key_of_keyed_modes(tmp_path: Path) -> None:
    assert load(tmp_path, "mode: upsert\nevolution: evolve").pipeline("orders").key == ["id"]
    assert load(tmp_path, "mode: upsert\nevolution: evolve").pipeline("orders").evolution == "evolve"
    assert load(tmp_path, "mode: scd2\nkey: [total]").pipeline("orders").key == ["total"]
    assert mistakes(tmp_path, "mode: upsert\nkey: [total]") == [
        "esker.yml:8:5: pipelines.orders.key: the contract has another primary key: id"
    ]


def test_nothing_is_said_twice(tmp_path: Path) -> None:
    [columns, layout] = mistakes(tmp_path, "columns: {id: string}\npartition_by: [id]")
    assert columns == (
        "esker.yml:7:5: pipelines.orders.columns: columns: stands in the contract; write it there only"
    )
    assert "partition_by: stands in the contract" in layout


def test_mistakes_of_both_files_are_told(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "mod: append", CONTRACT.replace("logicalType: number", "logicalType: numbr"))
    assert found == [
        'contracts/orders.odcs.yaml:10:23: schema.0.properties.2.logicalType: "numbr" is not known here; '
        'did you mean "number"?',
        'esker.yml:7:5: pipelines.orders.mod: unknown key "mod"; did you mean "mode"?',
    ]


def test_no_such_file(tmp_path: Path) -> None:
    load(tmp_path, "")
    (tmp_path / "contracts/orders.odcs.yaml").unlink()
    with pytest.raises(InvalidProject, match="there is no file"):
        load_project(tmp_path)


def test_a_contract_that_is_no_yaml(tmp_path: Path) -> None:
    [found] = mistakes(tmp_path, "", "a: [1\nb: 2\n")
    assert found.startswith("contracts/orders.odcs.yaml:2:2: ")


def test_reserved_names_are_refused(tmp_path: Path) -> None:
    [found] = mistakes(tmp_path, "", CONTRACT.replace("name: total", "name: _esker_hash"))
    assert found.startswith("contracts/orders.odcs.yaml:10:10: schema.0.properties.2.name: ")
