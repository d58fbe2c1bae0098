"""Lay contracts under the pipelines that name them, as if the pipelines said all that themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esker.errors import InvalidYaml, Problem
from esker.project.contract.model import Contract
from esker.project.contract.read import UnreadableContract, read_contract
from esker.project.document import Document, KeyPath
from esker.project.modes import KEYED

_SAID_ONCE = ("columns", "partition_by", "sort_by", "format", "format_version")
_OF_KEY = ("upsert", "insert_only", "sync")
"""Modes in which the key of the pipeline identifies a row of the table."""


def lay_contracts(document: Document, folder: Path) -> tuple[dict[str, Contract], list[Problem]]:
    """Read the contracts of all pipelines into the document. Returns them by pipeline, and what is wrong."""
    contracts: dict[str, Contract] = {}
    problems: list[Problem] = []
    pipelines = document.at(("pipelines",))
    for name, pipeline in pipelines.items() if isinstance(pipelines, dict) else ():
        if not isinstance(pipeline, dict) or not isinstance(pipeline.get("contract"), str):
            continue
        place: KeyPath = ("pipelines", name)
        file, _, wanted = pipeline["contract"].partition("#")
        if not (folder / file).is_file():
            problems.append(document.problem((*place, "contract"), f'there is no file "{file}"'))
            continue
        try:
            contract = read_contract(folder / file, file, str(pipeline.get("table")), wanted or None)
        except InvalidYaml as error:
            problems += error.problems
        except UnreadableContract as error:
            problems += error.problems
        else:
            contracts[name] = contract
            problems += _lay(document, place, pipeline, contract)
    return contracts, problems


def _lay(document: Document, place: KeyPath, pipeline: dict[str, Any], contract: Contract) -> list[Problem]:
    problems = []
    said = contract.as_declared()
    for key in _SAID_ONCE:
        if key in said and key in pipeline:
            message = f"{key}: stands in the contract; write it there only"
            problems.append(document.problem((*place, key), message))
    mode = pipeline.get("mode", "append")
    if contract.key and mode in KEYED:
        if "key" not in pipeline:
            said["key"] = list(contract.key)
        elif mode in _OF_KEY and list(pipeline["key"]) != list(contract.key):
            primary = ", ".join(contract.key)
            problems.append(
                document.problem((*place, "key"), f"the contract has another primary key: {primary}")
            )
    said.setdefault("evolution", "freeze")
    mark = document.mark((*place, "contract"))
    said["properties"] = {**said.get("properties", {}), **(pipeline.pop("properties", None) or {})}
    for key in said.keys() - pipeline.keys():
        pipeline[key] = said[key]
        if mark is not None:
            document.marks[*place, key] = mark
    return problems
