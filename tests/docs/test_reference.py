"""Everything that a user meets has a page: commands, keys, errors. The pages come from the code."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import typer.main

import esker
from esker.cli.main import app
from esker.errors import EskerError, Problem, Tripped
from esker.load.counts import RowCounts
from esker.pipeline.api import OpenProject
from esker.pipeline.figures import Figure
from esker.pipeline.infer import Inferred
from esker.pipeline.metadata import TableMetadata
from esker.pipeline.plan import PipelinePlan
from esker.pipeline.result import RunReport, RunResult
from esker.pipeline.running import RunningProject
from esker.pipeline.tables_seen import Statistics
from esker.pipeline.waiting import Waiting
from esker.project.json_schema import json_schema

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def _errors() -> list[type[EskerError]]:
    def walk(kind: type[EskerError]) -> Iterator[type[EskerError]]:
        for below in kind.__subclasses__():
            # Tests may define errors of their own; those need no page.
            if below.__module__.startswith("esker."):
                yield below
                yield from walk(below)

    return list(walk(EskerError))


def test_pages_are_as_the_code_says() -> None:
    """A change of a help text, a key or an error that forgot its page fails here."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_page_is_named_with_the_command_that_repairs_it(tmp_path: Path) -> None:
    """The check says what to do, not only that something is wrong."""
    for name in ("generate.py", "python_page.py", "catalogs.json"):
        (tmp_path / name).write_text((ROOT / "docs" / name).read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(tmp_path / "generate.py")]
    subprocess.run(command, check=True, capture_output=True)
    page = tmp_path / "reference" / "errors.md"
    page.write_text("old")
    done = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "errors.md" in done.stderr
    assert "make docs" in done.stderr


def test_pages_are_written_without_spark() -> None:
    """The generator runs where there is no Java, and does not wait for PySpark."""
    program = (
        "import runpy, sys; sys.argv = ['generate.py', '--check']; sys.path.insert(0, 'docs')\n"
        "try: runpy.run_path('docs/generate.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'pyarrow')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_command_has_its_options_on_the_page() -> None:
    """Each verb has a section that names every argument and option."""
    text = (REFERENCE / "commands.md").read_text()
    group: Any = typer.main.get_command(app)
    verbs: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        verbs |= {f"{name} {verb}": each for verb, each in inner.items()} if inner else {name: command}
    for name, command in verbs.items():
        section = text.split(f"\n## esker {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            wanted = parameter.opts if parameter.param_type_name == "option" else [parameter.help]
            for form in wanted:
                assert form in section, f"{form} of esker {name} is not on the page"


def test_every_key_of_every_declaration_is_on_the_page() -> None:
    """A key that is declared somewhere below the project is explained under its declaration."""
    text = (REFERENCE / "project-file.md").read_text()
    schema = json_schema()
    sections = re.split(r"\n## ", text)[1:]
    for name, model in {"Project": schema, **schema["$defs"]}.items():
        keys = {f"| `{key}` |" for key in model["properties"]}
        assert any(all(key in section for key in keys) for section in sections), f"{name} has no section"


def test_every_error_is_on_the_page() -> None:
    """Each code has a section with the docstring of its class."""
    text = (REFERENCE / "errors.md").read_text()
    for kind in _errors():
        section = text.split(f"\n## {kind.code}\n")[1].split("\n## ")[0]
        assert re.sub(r"\s+", " ", inspect.getdoc(kind) or "") in section
        assert f"exit status {kind.exit_status}" in section


def test_the_python_interface_is_on_the_page() -> None:
    """Each function, each method of a project and each field of what comes back is explained there."""
    text = (REFERENCE / "python.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in re.split(r"\n##+ ", text)[1:]}
    for name in esker.__all__:
        if not name.startswith("_"):
            assert _first_words(getattr(esker, name)) in sections[f"esker.{name}"]
    for name, member in {**vars(RunningProject), **vars(OpenProject)}.items():
        if name.startswith("_") or name == "at":
            continue
        if inspect.isfunction(member):
            section = sections[f"project.{name}"]
            assert _first_words(member) in section
            for parameter in inspect.signature(member).parameters:
                assert parameter == "self" or f"{parameter}: " in section
        else:
            assert f"| `{name}` |" in sections["The project"]
    for kind in (RunResult, RunReport, RowCounts, PipelinePlan, Inferred, Waiting, Figure, Statistics):
        for each in fields(kind):
            assert f"| `{each.name}` |" in sections[kind.__name__]
    for name, member in vars(TableMetadata).items():
        if not name.startswith("_") and isinstance(member, property | cached_property):
            assert f"| `{name}` |" in sections["TableMetadata"]


def _first_words(thing: Any) -> str:
    return re.sub(r"\s+", " ", (inspect.getdoc(thing) or "no docstring").split("\n\n")[0])


def test_codes_are_unique_and_have_one_form() -> None:
    """A code is ESK, the area and three digits, and stands for one class only."""
    codes = [kind.code for kind in _errors()]
    assert len(codes) == len(set(codes))
    assert [code for code in codes if not re.fullmatch(r"ESK-[A-Z]+-\d{3}", code)] == []
    without_own = [kind.__name__ for kind in _errors() if "code" not in vars(kind)]
    assert without_own == []


@pytest.mark.parametrize("kind", _errors(), ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[EskerError]) -> None:
    """An error that crosses a process border says the same on the other side."""
    error = _made(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert vars(copy) == vars(error)
    assert (copy.code, copy.message, copy.reason, copy.remedy) == (
        error.code,
        error.message,
        error.reason,
        error.remedy,
    )
    assert str(copy) == str(error) == error.message
    assert copy.as_json() == error.as_json()


def test_errors_say_what_why_and_what_to_do() -> None:
    """Every error that brings its own words has all three parts."""
    for kind in _errors():
        if kind.__init__ is not EskerError.__init__:
            error = _made(kind)
            assert error.message, kind.__name__
            assert error.reason, kind.__name__
            assert error.remedy, kind.__name__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Links between pages, and to headings on them, are not broken."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), flags=re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}, f"{page.name} links to {target}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


def _made(kind: type[EskerError]) -> EskerError:
    """Return an error with arguments that fit its signature."""
    hints = get_type_hints(kind.__init__)
    names = [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    arguments: dict[str, Any] = {name: _value(hints[name]) for name in names}
    return kind(**arguments)


def _value(hint: Any) -> Any:
    if hint is str or (str in get_args(hint) and get_origin(hint) is not Sequence):
        return "some text"
    if hint is int or int in get_args(hint):
        return 7
    if hint is Problem:
        return Problem("wrong", file="esker.yml", line=3, column=5, path="a.b", remedy="Write it anew.")
    if hint is EskerError:
        return EskerError("a part is missing", reason="Nobody answers.")
    if hint is Tripped:
        return Tripped("max_rows", 7, 5, "it has 7 rows, and at most 5 are allowed")
    if get_origin(hint) is Sequence:
        return [_value(get_args(hint)[0]), _value(get_args(hint)[0])]
    if hint is float:
        return 0.5
    if hint is bool:
        return True
    raise AssertionError(f"no sample for {hint}")
