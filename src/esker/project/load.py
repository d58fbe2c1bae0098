"""Read a project: YAML, environment, defaults and secrets become one checked `Project`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from esker.errors import InvalidProject, Problem, ProjectNotFound, UnknownEnvironment
from esker.project.contract.lay import lay_contracts
from esker.project.document import Document, read_document
from esker.project.explain import explain
from esker.project.families import find_families, with_stand_ins
from esker.project.pipelines import Pipeline
from esker.project.project import Project
from esker.project.secrets import MissingVariables, environment, resolve
from esker.project.transform import lay_transforms

PROJECT_FILE = "esker.yml"


def load_project(folder: Path | str = ".", env: str | None = None) -> Project:
    """Return the project in a folder, as it is in an environment.

    Raises ProjectNotFound, InvalidYaml, UnknownEnvironment or InvalidProject; the latter holds every
    problem of the file, not only the first.
    """
    root = Path(folder).expanduser().absolute()
    if not (root / PROJECT_FILE).is_file():
        raise ProjectNotFound(str(folder))
    document = read_document(root / PROJECT_FILE, PROJECT_FILE)
    problems = _choose(document, env) if env is not None else []
    _apply_defaults(document)
    problems += _resolve_variables(document, root)
    families, mistakes = find_families(document, root)
    problems += mistakes
    contracts, mistakes = lay_contracts(document, root)
    problems += mistakes
    problems += lay_transforms(document, root)
    bases: dict[str, Pipeline] = {}
    try:
        project = Project.model_validate(document.data)
        bases = {name: project.pipelines.pop(name) for name in families}
    except ValidationError as error:
        problems += _without_unset(explain(error, document, Project), problems)
    families, mistakes = with_stand_ins(families, bases)
    problems += _without_known(_without_unset(mistakes, problems), problems)
    if problems:
        order = sorted(
            problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.column or 0)
        )
        raise InvalidProject(order)
    return project.placed(root, env, contracts, families)


def _choose(document: Document, env: str) -> list[Problem]:
    """Lay an environment over the document. Returns what may not differ between environments."""
    known = document.at(("environments",))
    names = list(known) if isinstance(known, dict) else []
    if env not in names:
        raise UnknownEnvironment(env, names)
    problems = []
    for key in ("project", "environments"):
        if document.at(("environments", env, key)) is not None:
            place = ("environments", env, key)
            problems.append(document.problem(place, f'key "{key}" is the same in every environment'))
            del document.at(place[:-1])[key]
    document.overlay((), ("environments", env))
    return problems


def _apply_defaults(document: Document) -> None:
    pipelines = document.at(("pipelines",))
    for name, pipeline in pipelines.items() if isinstance(pipelines, dict) else ():
        if isinstance(pipeline, dict):
            document.underlay(("pipelines", name), ("defaults",))


def _resolve_variables(document: Document, folder: Path) -> list[Problem]:
    """Replace the variables of the document. Environments that were not chosen stay as they are."""
    variables = environment(folder)
    problems = []
    for path, text in list(document.texts()):
        if path[0] in ("environments", "defaults"):
            continue
        try:
            document.put(path, resolve(text, variables))
        except MissingVariables as missing:
            for name in missing.names:
                problems.append(
                    document.problem(
                        path,
                        f"variable {name} is not set",
                        remedy=f"Set {name} in the environment, or write {name}=… into .env beside esker.yml",
                    )
                )
    return problems


def _without_unset(problems: list[Problem], unset: list[Problem]) -> list[Problem]:
    """Leave out what follows only from an unset variable."""
    places = {(problem.line, problem.column) for problem in unset}
    return [problem for problem in problems if (problem.line, problem.column) not in places]


def _without_known(problems: list[Problem], known: list[Problem]) -> list[Problem]:
    """Leave out what has been found: what a family says of all tables, it says of each."""
    seen = {(problem.line, problem.column, problem.message) for problem in known}
    return [problem for problem in problems if (problem.line, problem.column, problem.message) not in seen]
