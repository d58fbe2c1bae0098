"""The page of the Python interface, from the text of the code: to import it would bring PySpark along."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import esker

ROOT = Path(esker.__file__).parent
_API = "esker.pipeline.api"
_PROJECT = "OpenProject"
_READABLE = "Readable"
"""Values that are made from this one have methods, too, which are shown."""
_INSIDE = (
    "esker.engine.session",
    "esker.engine.iceberg.new_table",
    "esker.ledger.state",
    "esker.project",
    "esker.errors",
    "esker.sources",
    "esker.contracts.evolution",
    "esker.pipeline.table_changes",
)
"""Modules whose values are handed through: people ask for their `str()` or `as_json()`, if for anything."""
_PROPERTIES = ("property", "cached_property")

Function = ast.FunctionDef


@dataclass(frozen=True)
class Module:
    """A module of the package, as text."""

    name: str
    tree: ast.Module

    @classmethod
    @cache
    def named(cls, name: str) -> Module:
        path = ROOT.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        return cls(name, ast.parse(path.read_text(encoding="utf-8")))

    def find(self, name: str) -> tuple[Module, ast.stmt] | None:
        """Return what a name stands for, and the module that says so; None for what is not of the package."""
        for statement in self._statements:
            match statement:
                case ast.ClassDef(name=found) | ast.FunctionDef(name=found) if found == name:
                    return self, statement
                case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                    return self, statement
                case ast.ImportFrom(module=str(module), names=names) if module.startswith("esker"):
                    if any((each.asname or each.name) == name for each in names):
                        return Module.named(module).find(name)
        return None

    @property
    def _statements(self) -> Iterator[ast.stmt]:
        """What stands in it, also below `if TYPE_CHECKING`."""
        for statement in self.tree.body:
            yield from statement.body if isinstance(statement, ast.If) else (statement,)

    def doc_of(self, statement: ast.stmt) -> str:
        """Return the text below an assignment."""
        return _doc_below(self.tree.body, statement)


def python_page(note: str) -> str:
    """Return the page: functions, the project, and what its methods take and give."""
    top, api = Module.named("esker"), Module.named(_API)
    found = api.find(_PROJECT)
    assert found is not None
    project = found[1]
    assert isinstance(project, ast.ClassDef)
    methods = list(_inherited(api, project))
    values = _values(methods)
    lines = [
        "# Python",
        "",
        note,
        "",
        "Everything that the command line does is a method of a project. Errors are exceptions with "
        "`code`, `message`, `reason` and `remedy` ([errors](errors.md)), all of them of class "
        "`esker.errors.EskerError`; where a method says that errors are in the result, they are there.",
        "",
        "```python",
        "import esker",
        "",
        'project = esker.open(".")',
        'result = project.run("sales")',
        "print(result.status, result.rows.inserted)",
        "```",
    ]
    for name in _exported(top):
        where = top.find(name)
        assert where is not None
        function = where[1]
        assert isinstance(function, Function)
        lines += ["", f"## esker.{name}", "", *_called(f"esker.{name}", function)]
    lines += ["", "## The project", "", _doc(project)]
    attributes = [each for _, each in methods if _is_property(each)]
    rows = [(each.name, _type(each.returns), _doc(each)) for each in attributes]
    lines += ["", "`esker.open` gives it.", "", *_table(("attribute", "type", "meaning"), rows)]
    for _, method in methods:
        if not _is_property(method) and not _is_class_method(method):
            lines += ["", f"### project.{method.name}", "", *_called(f"project.{method.name}", method)]
            if named := [name for name in _names(method) if name in values]:
                lines += ["", "See " + ", ".join(f"[{name}](#{name.lower()})" for name in named) + "."]
    lines += [
        "",
        "## Values",
        "",
        "What methods take and give. Most have `as_json()`: the value as commands print it with `--json`.",
    ]
    for name, (module, statement) in sorted(values.items()):
        lines += ["", f"### {name}", "", *_value(module, statement)]
    return "\n".join(lines) + "\n"


def _exported(module: Module) -> list[str]:
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(statement.value) if not name.startswith("_")]
    raise SystemExit(f"module {module.name} does not say what it exports")


def _inherited(module: Module, kind: ast.ClassDef) -> Iterator[tuple[Module, Function]]:
    """Yield the methods of a class, and those of the classes that it is made from, each once.

    One that says nothing of itself does what the one says that it stands for.
    """
    found = {method.name: (module, method) for method in _methods(kind)}
    for base in kind.bases:
        where = module.find(ast.unparse(base))
        if where is not None and isinstance(where[1], ast.ClassDef):
            for origin, method in _inherited(where[0], where[1]):
                if method.name not in found or ast.get_docstring(found[method.name][1]) is None:
                    found[method.name] = origin, method
    yield from found.values()


def _values(methods: Sequence[tuple[Module, Function]]) -> dict[str, tuple[Module, ast.stmt]]:
    """Return the package's own values that the signatures of methods name, and those that these name."""
    found: dict[str, tuple[Module, ast.stmt]] = {}
    waiting = [(module, note) for module, method in methods for note in _annotations(method)]
    while waiting:
        module, annotation = waiting.pop()
        for name in {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}:
            where = module.find(name)
            if where is None or name in found or name == _PROJECT or where[0].name.startswith(_INSIDE):
                continue
            found[name] = where
            waiting += [(where[0], note) for note in _named_by(where[1])]
    return found


def _names(function: Function) -> list[str]:
    """Return the names in a signature, what comes back first."""
    notes = reversed(list(_annotations(function)))
    found = (node.id for note in notes for node in ast.walk(note) if isinstance(node, ast.Name))
    return list(dict.fromkeys(found))


def _named_by(statement: ast.stmt) -> Iterator[ast.expr]:
    match statement:
        case ast.Assign(value=value):
            yield value
        case ast.ClassDef():
            yield from (field.annotation for field in _fields(statement))
            for method in _methods(statement):
                yield from _annotations(method)


def _annotations(function: Function) -> Iterator[ast.expr]:
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns


def _value(module: Module, statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Assign):
        doc = module.doc_of(statement)
        return [f"`{ast.unparse(statement.value)}`", *(("", doc) if doc else ())]
    if isinstance(statement, Function):
        return _called(statement.name, statement)
    assert isinstance(statement, ast.ClassDef)
    lines = [_doc(statement)]
    rows = _described(module, statement)
    if rows:
        lines += ["", *_table(("field", "type", "meaning"), rows)]
    for _, method in _inherited(module, statement):
        if (
            _READABLE in _bases(module, statement)
            and not _is_property(method)
            and not _is_class_method(method)
        ):
            lines += ["", *_called(f".{method.name}", method)]
    if members := [ast.unparse(e.value) for e in statement.body if isinstance(e, ast.Assign)]:
        lines += ["", ", ".join(f"`{member}`" for member in members)]
    return lines


def _described(module: Module, kind: ast.ClassDef) -> list[tuple[str, str, str]]:
    """Return the fields and properties of a class, those of the classes that it is made from first."""
    rows = []
    for base in kind.bases:
        where = module.find(ast.unparse(base))
        if where is not None and isinstance(where[1], ast.ClassDef):
            rows += _described(where[0], where[1])
    rows += [
        (ast.unparse(field.target), _type(field.annotation), _doc_below(kind.body, field))
        for field in _fields(kind)
    ]
    known = {name for name, _, _ in rows}
    own = [(e.name, _type(e.returns), _doc(e, must=False)) for e in _methods(kind) if _is_property(e)]
    return rows + [each for each in own if each[0] not in known]


def _bases(module: Module, kind: ast.ClassDef) -> Iterator[str]:
    """Yield the names of the classes of the package that a class is made from."""
    for base in kind.bases:
        where = module.find(ast.unparse(base))
        if where is not None and isinstance(where[1], ast.ClassDef):
            yield where[1].name
            yield from _bases(where[0], where[1])


def _fields(kind: ast.ClassDef) -> list[ast.AnnAssign]:
    found = [each for each in kind.body if isinstance(each, ast.AnnAssign)]
    return [each for each in found if not ast.unparse(each.target).startswith("_")]


def _methods(kind: ast.ClassDef) -> list[Function]:
    found = [each for each in kind.body if isinstance(each, Function)]
    return [each for each in found if not each.name.startswith("_") and each.name != "as_json"]


def _is_property(function: Function) -> bool:
    return any(ast.unparse(each) in _PROPERTIES for each in function.decorator_list)


def _is_class_method(function: Function) -> bool:
    return any(ast.unparse(each) == "classmethod" for each in function.decorator_list)


def _called(name: str, function: Function) -> list[str]:
    """Return how a function is called, and what it says of itself."""
    arguments = [part for part in _arguments(function) if part != "self"]
    returns = f" -> {_type(function.returns)}" if function.returns is not None else ""
    call = f"{name}({', '.join(arguments)}){returns}"
    if len(call) > 100:
        call = f"{name}(\n" + "".join(f"    {part},\n" for part in arguments) + f"){returns}"
    return ["```text", call, "```", "", _doc(function, whole=True)]


def _arguments(function: Function) -> Iterator[str]:
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {_type(argument.annotation)}" if argument.annotation is not None else "")
    return text if default is None else f"{text} = {ast.unparse(default)}"


def _type(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation).replace("pa.", "pyarrow.")


def _doc(node: ast.ClassDef | Function, *, whole: bool = False, must: bool = True) -> str:
    text = ast.get_docstring(node)
    if text is None and must:
        raise SystemExit(f"{node.name} is a part of the Python interface and has no docstring")
    paragraphs = [re.sub(r"\s+", " ", part) for part in (text or "").split("\n\n")]
    return ("\n\n" if whole else " ").join(paragraphs)


def _doc_below(body: Sequence[ast.stmt], statement: ast.stmt) -> str:
    """Return the text that stands below a statement and explains it."""
    following = body[body.index(statement) + 1 :]
    match following[:1]:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return re.sub(r"\s+", " ", inspect.cleandoc(text))
    return ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def cell(text: str, *, is_code: bool) -> str:
        text = text.replace("|", "\\|")
        return f"`{text}`" if is_code else text

    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *(
            "| " + " | ".join(cell(text, is_code=index < 2) for index, text in enumerate(row)) + " |"
            for row in rows
        ),
    ]
