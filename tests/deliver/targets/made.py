"""Messages and targets for tests, made from plain values."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from esker.deliver.targets import Message, Op, Target, open_target
from esker.project import Project
from esker.project.targets import AnyTarget, TargetDeclaration

_ANY: TypeAdapter[TargetDeclaration] = TypeAdapter(AnyTarget)


def message(id: str, version: int = 1, op: Op = "insert", /, **body: Any) -> Message:
    """Return a message whose changeset is its version; a delete has no body."""
    content = body if op != "delete" else None
    return Message(id, version, op, "museum.works", version, {"id": id}, content)


def target_of(folder: Path, to: dict[str, Any], **connections: dict[str, Any]) -> Target:
    """Return a target as it comes out in a task of Spark: declared, checked, and pickled."""
    document = {"project": "museum", "connections": connections}
    project = Project.model_validate(document).placed(folder, None)
    declared = _ANY.validate_python(to)
    declared.check_connection(project.connections, ("consumers", "works", "to"))
    found: Target = pickle.loads(pickle.dumps(open_target(declared, project)))
    return found
