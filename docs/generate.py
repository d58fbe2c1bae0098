"""Write the reference pages from the code: commands, keys of the project file, errors, Python.

`python docs/generate.py` writes them, `--check` only says which are out of date. Neither Spark nor Java
is needed. What a page says comes from where the program itself takes it: help texts, the JSON Schema,
docstrings. To change a page, change these.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typer.main
from python_page import python_page

from esker.cli.main import app
from esker.errors import EskerError, Outcome, Problem, Tripped
from esker.project.declaration import Name, TableName
from esker.project.json_schema import json_schema
from esker.project.settings import Memory

FOLDER = Path(__file__).parent / "reference"
RESULTS = Path(__file__).parent / "catalogs.json"
REPAIR = "make docs"
NOTE = "<!-- Written by docs/generate.py from the code. Do not edit: change the code, then `make docs`. -->"

Schema = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with `--check` compare them; return the exit status."""
    pages = {
        "commands.md": commands_page(),
        "project-file.md": project_file_page(json_schema()),
        "errors.md": errors_page(),
        "python.md": python_page(NOTE),
        "catalogs.md": catalogs_page(json.loads(RESULTS.read_text(encoding="utf-8"))),
    }
    if "--check" in arguments:
        stale = [name for name, text in pages.items() if _present(FOLDER / name) != text]
        for name in stale:
            print(f"docs/reference/{name} is out of date; repair it with: {REPAIR}", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    return 0


def _present(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


# --- commands ------------------------------------------------------------------------------------


def commands_page() -> str:
    """Return the page of every verb of the command line."""
    group: Any = typer.main.get_command(app)
    verbs = dict(_verbs(group))
    lines = [
        "# Commands",
        "",
        NOTE,
        "",
        _sentence(group.help),
        "",
        "Commands print for people: results on standard output, messages on standard error. With `--json` "
        "they print one JSON document on standard output instead, also when they fail. There are no moving "
        "lines and no colours when the output is not a terminal, and no colours when `NO_COLOR` is set.",
        "",
        *(
            f"- [`esker {name}`](#esker-{name.replace(' ', '-')}): {_sentence(verb.help)}"
            for name, verb in verbs.items()
        ),
    ]
    for name, verb in verbs.items():
        lines += ["", *_command(name, verb)]
    lines += ["", "## Exit statuses", "", *_exit_statuses(group.epilog)]
    return _page(lines)


def _verbs(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its name; those of a group with the group's name in front."""
    for name, command in group.commands.items():
        if inner := getattr(command, "commands", None):
            yield from ((f"{name} {verb}", each) for verb, each in inner.items())
        else:
            yield name, command


def _command(name: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument" and not p.hidden]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join(["esker", name, "[OPTIONS]", *map(_argument_form, arguments)])
    lines = [f"## esker {name}", "", f"    {usage}", "", _sentence(command.help)]
    if arguments:
        rows = [(f"`{_argument_form(p)}`", _text(p.help), _default(p)) for p in arguments]
        lines += ["", *_table(("argument", "meaning", "default"), rows)]
    if options:
        rows = [(_option_form(p), _text(p.help), _default(p)) for p in options]
        lines += ["", *_table(("option", "meaning", "default"), rows)]
    return lines


def _argument_form(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[].")
    if parameter.nargs == -1:
        return f"[{name}]..."
    return name if parameter.required else f"[{name}]"


def _option_form(parameter: Any) -> str:
    value = "" if parameter.is_flag else f" {(parameter.metavar or parameter.name).upper()}"
    return ", ".join(f"`{form}{value}`" for form in (*parameter.opts, *parameter.secondary_opts))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "must be given"
    if parameter.default is None or parameter.default is False:
        return ""
    return f"`{parameter.default}`"


def _exit_statuses(epilog: str) -> list[str]:
    meanings = dict(re.findall(r"(\d+) ([^,.]+)", epilog))
    codes: dict[str, list[str]] = {}
    for kind in error_classes():
        codes.setdefault(str(kind.exit_status), []).append(kind.code)
    if unknown := sorted(set(codes) - set(meanings)):
        raise SystemExit(f"exit statuses without a meaning in the epilog of the app: {', '.join(unknown)}")
    rows = [
        (status, meaning, ", ".join(f"[{code}](errors.md#{_anchor(code)})" for code in codes.get(status, ())))
        for status, meaning in meanings.items()
    ]
    return [
        "`esker run` and `esker plan` with several pipelines end with the status of those that failed when "
        "they agree, otherwise with 1. `esker doctor` ends with 1 when a check fails. A run with nothing to "
        "do, and one that finds another run of the same pipeline at work, end with 0.",
        "",
        *_table(("status", "meaning", "errors"), rows),
    ]


# --- the project file ----------------------------------------------------------------------------

_TITLES = {
    "Project": "The project",
    "Pipeline": "A pipeline",
    "Family": "A family of pipelines",
    "Consumer": "A consumer",
    "Enrichment": "A consumer: rows of another table",
    "Steps": "A consumer: how much at a time",
    "ReindexSettings": "A consumer: a full reindex",
    "FilesSource": "Source: files",
    "HttpSource": "Source: http",
    "ParentResource": "Source: http, a parent",
    "Incremental": "Source: http, parameters of a window",
    "SinglePagePaginator": "Paginator: single_page",
    "HeaderLinkPaginator": "Paginator: header_link",
    "JsonLinkPaginator": "Paginator: json_link",
    "CursorPaginator": "Paginator: cursor",
    "OffsetPaginator": "Paginator: offset",
    "PageNumberPaginator": "Paginator: page_number",
    "BearerAuth": "Auth: bearer",
    "ApiKeyAuth": "Auth: api_key",
    "BasicAuth": "Auth: http_basic",
    "ClientCredentialsAuth": "Auth: oauth2_client_credentials",
    "OaiPmhSource": "Source: oai_pmh",
    "JdbcSource": "Source: jdbc",
    "JdbcTables": "Source: jdbc, many tables",
    "WindowSettings": "Windows of time",
    "ColumnDeclaration": "A column",
    "SqliteCatalog": "Catalog: sqlite",
    "JdbcCatalog": "Catalog: jdbc",
    "RestCatalog": "Catalog: rest",
    "SigV4": "Catalog: rest, signed requests",
    "S3TablesCatalog": "Catalog: s3tables",
    "GlueCatalog": "Catalog: glue",
    "HiveCatalog": "Catalog: hive",
    "NessieCatalog": "Catalog: nessie",
    "HadoopCatalog": "Catalog: hadoop",
    "S3Store": "Store: s3",
    "GcsStore": "Store: gcs",
    "AzureStore": "Store: azure",
    "ElasticsearchConnection": "Connection: elasticsearch",
    "OpensearchConnection": "Connection: opensearch",
    "KafkaConnection": "Connection: kafka",
    "WebhookConnection": "Connection: webhook",
    "Signature": "Connection: webhook, a signature",
    "AwsConnection": "Connection: aws",
    "ElasticsearchTarget": "Target: elasticsearch",
    "OpensearchTarget": "Target: opensearch",
    "KafkaTarget": "Target: kafka",
    "WebhookTarget": "Target: webhook",
    "SnsTarget": "Target: sns",
    "SqsTarget": "Target: sqs",
    "FilesTarget": "Target: files",
    "PythonTarget": "Target: python",
    "SparkSettings": "Spark",
    "StateSettings": "State database",
}
"""Headings, in the order of the page. Declarations that are not listed follow under their class's name."""

_PATTERNS = {
    get_args(kind)[1].pattern: words
    for kind, words in ((Name, "name"), (TableName, "table name"), (Memory, "memory"))
}


def project_file_page(schema: Schema) -> str:
    """Return the page of every key that a project file may hold."""
    models = {"Project": schema} | {name: schema["$defs"][name] for name in _reachable(schema)}
    found = {name: models[name] for name in dict.fromkeys((*_TITLES, *models)) if name in models}
    lines = [
        "# The project file",
        "",
        NOTE,
        "",
        "A project is a folder with a file `esker.yml`. Unknown keys are errors, and each error names line "
        "and column: `esker check` looks at the file without Spark. `esker schema` prints the JSON Schema "
        "of the file, which editors use for completion.",
        "",
        "`${NAME}` in any text is replaced by the environment variable or the line of `.env` beside the "
        "file; `${NAME:-text}` has a default for a variable that is unset or empty; `$$` is a dollar sign. "
        "A *secret* must come from a variable: one that stands in the file, also as a default, is refused.",
        "",
        "A *name* has lower-case letters, digits and `_`, beginning with a letter. A *table name* has its "
        "namespace: `shop.orders`. A *duration* is a number with a unit: `30s`, `15m`, `6h`, `7d`, "
        "`1h 30m`. *Memory* is `512m` or `4g`.",
    ]
    for name, model in found.items():
        lines += ["", f"## {_title(name)}", "", _text(model["description"])]
        required = model.get("required", ())
        rows = [
            (f"`{key}`", _kind(facts), _default_value(facts, key in required), _described(facts, found))
            for key, facts in model["properties"].items()
        ]
        lines += ["", *_table(("key", "type", "default", "meaning"), rows)]
    return _page(lines)


def _reachable(schema: Schema) -> list[str]:
    """Return the declarations below the project, in the order in which keys lead to them."""
    order: list[str] = []
    waiting: list[Any] = [schema["properties"]]
    while waiting:
        for name in _references(waiting.pop(0)):
            if name not in order:
                order.append(name)
                waiting.append(schema["$defs"][name]["properties"])
    return order


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "$ref":
                yield _name(inner)
            elif key not in ("discriminator", "default"):
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _title(name: str) -> str:
    return _TITLES.get(name, name)


def _kind(facts: Schema) -> str:
    """Return a type in words."""
    if reference := facts.get("$ref"):
        title = _title(_name(reference))
        return f"[{title[0].lower() + title[1:]}](#{_anchor(title)})"
    if choices := facts.get("anyOf") or facts.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(c) for c in choices if c.get("type") != "null"))
    if "const" in facts:
        return f"`{facts['const']}`"
    if "enum" in facts:
        return ", ".join(f"`{value}`" for value in facts["enum"])
    match facts.get("type"):
        case "object":
            inner = _values(facts)
            return f"map of {_kind(inner)}" if inner and _kind(inner) != "map" else "map"
        case "array":
            return f"list of {_kind(facts['items'])}"
        case "boolean":
            return "`true` or `false`"
        case "integer":
            return f"number, at least {facts['minimum']}" if "minimum" in facts else "number"
        case "number":
            return "number"
        case "string":
            return _text_kind(facts)
        case [*kinds] if "string" in kinds:
            return "text"
    return "any value"


def _values(facts: Schema) -> Schema | None:
    """Return what the values of a map are."""
    named = facts.get("patternProperties")
    inner = next(iter(named.values())) if named else facts.get("additionalProperties")
    return inner if isinstance(inner, Mapping) else None


def _text_kind(facts: Schema) -> str:
    if facts.get("format") == "password":
        return "secret"
    if pattern := facts.get("pattern"):
        return _PATTERNS.get(pattern, "text")
    if facts.get("examples") and facts["examples"][0] == "30s":
        return "duration"
    return "one character" if facts.get("maxLength") == 1 else "text"


def _default_value(facts: Schema, required: bool) -> str:
    if required:
        return "**must be given**"
    if "default" in facts:
        default = facts["default"]
        return "none" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"
    return "empty" if facts.get("type") in ("object", "array") else "its defaults"


def _described(facts: Schema, found: Mapping[str, Schema]) -> str:
    """Return what a key means: its own words, else those of what it holds."""
    if own := facts.get("description"):
        return _text(own)
    for part in (*facts.get("anyOf", ()), _values(facts) or {}, facts):
        if described := part.get("description"):
            return _text(described)
        if reference := part.get("$ref"):
            return _text(found[_name(reference)]["description"])
    return "Which kind this is." if "const" in facts else ""


# --- catalogs ------------------------------------------------------------------------------------

_YES = "yes"


_WAYS_IN = [
    (
        "rest",
        "OAuth2 (client credentials), token, user and password, signed requests (SigV4), vended credentials",
        "servers other than SeaweedFS: Polaris, Lakekeeper, Unity, Glue's and BigLake's endpoints",
    ),
    ("jdbc", "user and password", "certificates"),
    ("nessie", "no credentials", "token, user and password, OAuth2"),
    ("hive", "no credentials", "Kerberos"),
    (
        "s3, glue, s3tables",
        "keys, profile, role, keys in the environment, credentials of a container (ECS, EKS)",
        "the role of a machine (EC2), sign-in by SSO, Amazon's own servers",
    ),
    ("gcs", "anonymous", "a service account, `gcloud auth`, the machine's own"),
    ("azure", "account key, shared access signature", "managed identity, service principal, `az login`"),
]
"""By tests/engine/test_rest_auth.py, test_rest_catalog.py and test_jdbc_catalog.py, and by
tests/conformance/test_aws_ways_in.py and test_azure_ways_in.py."""


def catalogs_page(found: Mapping[str, Any]) -> str:
    """Return what each catalog was seen to do, and each reader to read, from the results of the suite."""
    kinds, capabilities, programs = found["kinds"], found["capabilities"], found["programs"]
    reasons: list[str] = []
    dates = sorted(
        cell["date"]
        for part in ("results", "readers", "encodings")
        for cells in found[part].values()
        for cell in cells.values()
    )
    lines = [
        "# Catalogs, stores and readers",
        "",
        "<!-- Written by docs/generate.py from docs/catalogs.json, which tests/conformance writes. "
        "Do not edit: `make soak`, then `make docs`. -->",
        "",
        "Every line is a catalog with its store, tried on a real server, or on the emulator that is named, "
        "by one set of tests. A number is a limit: the tests see to it that it is there and ends with a "
        "clear error. [Use the catalog you have](../how-to/the-catalog-you-have.md) tells how to declare it.",
        "",
        f"The cells are from {dates[0]} to {dates[-1]}; `docs/catalogs.json` has the date and the commit of "
        "each. Cells from before dates were recorded have those of the commit that last changed them.",
        "",
        *_table(("catalog, store", *capabilities), _cells(found["results"], kinds, reasons)),
        "",
        "## Who reads it",
        "",
        "After each of these, other programs read the table, its change log and its quarantine, opened with "
        "what `esker export` prints for them. They see the same rows, columns, types and snapshots as "
        "Spark, now and at earlier snapshots.",
        "",
        *_table(("catalog, store", *programs.values()), _cells(found["readers"], kinds, reasons)),
        "",
        "## What they read",
        "",
        "Ways in which Esker can write a table. [`readers:`](../how-to/readers.md) of a pipeline picks those "
        "that all of its readers know.",
        "",
        *_table(("written as", *programs.values()), _cells(found["encodings"], None, reasons)),
        "",
        "## Limits",
        "",
        *(
            f"{number}. {_sentence(reason[0].upper() + reason[1:])}"
            for number, reason in enumerate(reasons, 1)
        ),
        "",
        "## What was tried",
        "",
        *(f"- **{name}**: {_text(words)}" for name, words in capabilities.items()),
        "",
        "## Ways in",
        "",
        "Each way in that was tried opened a server, or the emulator above, and rows were loaded. The others "
        "are written as Iceberg's and the makers' clients want it, and nothing has opened with them yet.",
        "",
        *_table(("of", "tried", "not tried"), _WAYS_IN),
    ]
    return _page(lines)


def _cells(
    results: Mapping[str, Mapping[str, Mapping[str, str]]],
    titles: Mapping[str, str] | None,
    reasons: list[str],
) -> list[tuple[str, ...]]:
    """Return the lines of a table, with numbers in the place of reasons; new reasons are added to these."""
    rows = []
    for line, dated in results.items():
        cells = {column: cell["found"] for column, cell in dated.items()}
        reasons += [cell for cell in dict.fromkeys(cells.values()) if cell != _YES and cell not in reasons]
        numbers = (_YES if cell == _YES else f"[{reasons.index(cell) + 1}]" for cell in cells.values())
        rows.append((titles[line] if titles is not None else line, *numbers))
    return rows


# --- errors --------------------------------------------------------------------------------------


_UNEXPECTED = (
    "Under this code itself Esker reports what it did not expect: a mistake in Esker, not in your project. "
    "The error names a file that holds the details."
)


def errors_page() -> str:
    """Return the page of every error, with the words that it says."""
    kinds = error_classes()
    codes = [kind.code for kind in kinds]
    if double := sorted({code for code in codes if codes.count(code) > 1}):
        raise SystemExit(f"error codes stand for two errors: {', '.join(double)}")
    lines = [
        "# Errors",
        "",
        NOTE,
        "",
        "Every error has a code that never changes its meaning, says what happened, why, and what to do. "
        "With `--json` these are the fields `code`, `message`, `reason` and `remedy` of the object `error`. "
        "What is worth a retry may succeed a little later, as it is; the rest wants a person. "
        "Words in angle brackets stand for what the error is about. "
        "[When it fails](../how-to/when-it-fails.md) tells how to go on.",
        "",
        *_table(
            ("code", "what happened", "exit status"),
            [(f"[{k.code}](#{_anchor(k.code)})", _summary(k), str(k.exit_status)) for k in kinds],
        ),
    ]
    for kind in kinds:
        lines += [
            "",
            f"## {kind.code}",
            "",
            f"{_doc(kind)} (`{kind.__name__}`, exit status {kind.exit_status}{_OUTCOMES[kind.outcome]})",
        ]
        if kind.__init__ is EskerError.__init__:
            lines += ["", _UNEXPECTED if kind is EskerError else _family(kind)]
            continue
        said = example(kind)
        lines += ["", *_said(said)]
    return _page(lines)


_OUTCOMES = {
    Outcome.REFUSED: "",
    Outcome.RETRY: ", worth a retry",
    Outcome.UNKNOWN: ", worth a retry: what happened is not known until then",
}


def error_classes() -> list[type[EskerError]]:
    """Return the whole tree of errors, in the order of their codes."""

    def walk(kind: type[EskerError]) -> Iterator[type[EskerError]]:
        yield kind
        for below in kind.__subclasses__():
            yield from walk(below)

    return sorted(walk(EskerError), key=lambda kind: kind.code)


class _Number(int):
    """A number that prints as its name."""

    name: str

    def __new__(cls, name: str) -> _Number:
        made = super().__new__(cls, 1)
        made.name = name
        return made

    def __format__(self, spec: str) -> str:
        return f"<{self.name}>"


def example(kind: type[EskerError]) -> EskerError:
    """Return an error of a kind whose arguments are their own names in angle brackets."""
    hints = get_type_hints(kind.__init__)
    arguments: dict[str, Any] = {
        name: _stand_in(name, hints[name])
        for name, parameter in inspect.signature(kind.__init__).parameters.items()
        if name != "self" and parameter.default is inspect.Parameter.empty
    }
    return kind(**arguments)


def _stand_in(name: str, hint: Any) -> Any:
    if hint in (int, float) or int in get_args(hint):
        return _Number(name)
    if hint is Problem:
        return Problem("<problem>", file="esker.yml")
    if hint is EskerError:
        return EskerError(f"<{name}>", reason="<why>")
    if hint is Tripped:
        return Tripped("<guard>", 0, 0, "<what it has, and what is allowed>")
    if get_origin(hint) is not None and issubclass(get_origin(hint), Sequence):
        return [_stand_in(name, get_args(hint)[0])]
    return f"<{name}>"


def _said(error: EskerError) -> list[str]:
    said = [("error", error.message), ("why", error.reason), ("do", error.remedy)]
    return ["```text", *(f"{word + ':':6} {text}" for word, text in said if text), "```"]


def _family(kind: type[EskerError]) -> str:
    below = ", ".join(f"[{k.code}](#{_anchor(k.code)})" for k in kind.__subclasses__())
    return f"A family of errors: {below}."


def _doc(kind: type[EskerError]) -> str:
    if not kind.__dict__.get("__doc__"):
        raise SystemExit(f"error {kind.__name__} has no docstring")
    return _text(inspect.getdoc(kind))


def _summary(kind: type[EskerError]) -> str:
    return _doc(kind).split(". ")[0].rstrip(".")


# --- Markdown ------------------------------------------------------------------------------------


def _page(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(map(_cell, row)) + " |" for row in rows),
    ]


def _cell(text: str) -> str:
    parts = text.replace("|", "\\|").split("`")
    # Outside of code, Markdown would take array<string> for a tag of HTML.
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def _text(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def _sentence(text: str | None) -> str:
    words = _text(text)
    return words if words.endswith(".") else words + "."


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
