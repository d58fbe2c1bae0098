"""What every command shares: help, usage errors, exit statuses, colours, interruptions."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

import esker
from esker.ledger.runs import latest_runs, record_end, record_start
from esker.ledger.state import State
from esker.project import load_project
from tests.cli.terminal import ESKER, Terminal, ask, environment
from tests.command import finish

VERBS = ("init", "check", "plan", "run", "peek", "status", "show", "doctor", "schema", "version")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")


def test_help_names_every_command_and_status(terminal: Terminal) -> None:
    """`esker --help` is the map of the program; no arguments show it too."""
    for arguments in (("--help",), ("-h",), ()):
        answer = terminal.ask(*arguments)
        assert answer.status == (0 if arguments else 2)
        for verb in VERBS:
            assert re.search(rf"^\W*{verb} ", answer.stdout + answer.stderr, re.MULTILINE)
        assert "130 interrupted" in answer.stdout + answer.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_explains_itself(terminal: Terminal, verb: str) -> None:
    """Each has help, and all can print JSON."""
    answer = terminal.ask(verb, "--help")
    assert answer.status == 0
    assert f"Usage: esker {verb}" in answer.stdout
    assert "--json" in answer.stdout


USAGE = [
    (["statu"], "No such command 'statu'. Did you mean 'status'?"),
    (["zzz"], "No such command 'zzz'."),
    (["check", "--bogus"], "No such option: --bogus"),
    (["peek"], "Missing argument 'PIPELINE'."),
    (["show", "a.b", "--limit", "-1"], "Invalid value for '--limit'"),
    (["show", "a.b", "--limit", "many"], "Invalid value for '--limit'"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_a_usage_error_ends_with_2(terminal: Terminal, arguments: list[str], message: str) -> None:
    """A mistyped command is answered on standard error, with a guess where there is one."""
    answer = terminal.ask(*arguments)
    assert (answer.status, answer.stdout) == (2, "")
    assert message in re.sub(r"[│\s]+", " ", answer.stderr)


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_a_usage_error_as_a_document(terminal: Terminal, arguments: list[str], message: str) -> None:
    """A program that asked for JSON gets JSON, whatever is wrong."""
    answer = terminal.ask(*arguments, "--json")
    assert (answer.status, answer.stderr) == (2, "")
    assert answer.document["status"] == "failed"
    assert set(answer.error) == {"code", "message", "reason", "remedy"}
    assert message in answer.error["message"]


@pytest.mark.parametrize("verb", ["run", "plan", "peek"])
def test_an_unknown_pipeline_is_answered_at_once(terminal: Terminal, shop: Path, verb: str) -> None:
    """A mistyped pipeline ends with 2 and the name that was meant."""
    answer = terminal.ask(verb, "order", "--project", shop, "--json")
    assert (answer.status, answer.error["code"]) == (2, "ESK-PROJECT-005")
    assert answer.error["remedy"] == "Did you mean orders?"
    assert not (shop / ".esker").exists()


@pytest.mark.parametrize(
    "arguments",
    [["check"], ["plan"], ["run"], ["peek", "x"], ["status"], ["show", "a.b"], ["doctor"]],
    ids=" ".join,
)
def test_without_a_project_every_command_says_so(
    terminal: Terminal, tmp_path: Path, arguments: list[str]
) -> None:
    """All of them look for the project first."""
    answer = terminal.ask(*arguments, "--project", tmp_path, "--json")
    assert (answer.status, answer.error["code"]) == (2, "ESK-PROJECT-001")


def test_a_state_database_that_cannot_be_used_ends_with_4(terminal: Terminal, shop: Path) -> None:
    """`esker status` names the damaged file and what may be done about it."""
    (shop / ".esker").mkdir()
    (shop / ".esker" / "state.db").write_bytes(b"no database" * 100)
    answer = terminal.ask("status", "--project", shop, "--json")
    assert (answer.status, answer.error["code"]) == (4, "ESK-STATE-001")


def test_status_before_the_first_run(terminal: Terminal, shop: Path) -> None:
    """A new project has a status: never ran."""
    answer = terminal.ask("status", "--project", shop, "--json")
    assert answer.status == 0
    assert [line["status"] for line in answer.document["pipelines"]] == ["never ran", "never ran"]
    assert "never ran" in terminal.ask("status", "--project", shop).stdout


def test_the_version_is_the_packages(terminal: Terminal) -> None:
    """`esker version` and `esker.__version__` agree."""
    answer = terminal.ask("version", "--json")
    assert answer.document["esker"] == esker.__version__
    assert f"esker {esker.__version__}\n" in terminal.ask("version").stdout


def test_the_module_has_no_other_names() -> None:
    """A wrong name is an AttributeError, as for every module."""
    with pytest.raises(AttributeError, match="no attribute 'verson'"):
        _ = esker.verson  # type: ignore[attr-defined]


def on_a_terminal(folder: Path, verb: str = "check", **changes: str | None) -> str:
    """Run a command whose output is a terminal; return what the terminal shows."""
    master, slave = pty.openpty()
    environment_ = environment({"TERM": "xterm-256color", "NO_COLOR": None, **changes})
    with subprocess.Popen(
        [*ESKER, verb], cwd=folder, env=environment_, stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass  # Linux: the last writer has closed the terminal
        finally:
            os.close(master)
    return shown.decode()


@pytest.mark.process
def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    """Red on a terminal; no colour with NO_COLOR, and no codes at all into a pipe or file."""
    assert COLOUR.search(on_a_terminal(tmp_path))
    assert not COLOUR.search(on_a_terminal(tmp_path, NO_COLOR="1"))
    piped = ask("check", folder=tmp_path, TERM="xterm-256color", NO_COLOR=None, FORCE_COLOR=None)
    assert piped.status == 2
    assert "\x1b" not in piped.stdout + piped.stderr
    assert piped.stderr.splitlines()[0] == 'error ESK-PROJECT-001 no esker.yml in folder "."'


@pytest.mark.process
@pytest.mark.parametrize("width", [200, 80, 40])
def test_status_breaks_no_word(shop: Path, width: int) -> None:
    """On a narrow terminal lines are broken between words; on a very narrow one rows become lists."""
    with closing(State.open(load_project(shop))) as state:
        record_start(state, "shop", "orders", "one")
        record_end(state, "one", "succeeded", {"rows": {"inserted": 10}, "changeset": 7}, None)
        moment = latest_runs(state, "shop", "orders")[0].started_at
    shown = on_a_terminal(shop, "status", COLUMNS=str(width), NO_COLOR="1").splitlines()
    # Titles are bold: codes that take no room.
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown]
    assert max(len(line) for line in plain) <= width
    words = {word for line in plain for word in re.split(r"[\s│┃,]+", line)}
    assert {"orders", "shop.customers", "succeeded", "changeset", "success"} <= words
    assert {f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}"} <= words


@pytest.mark.process
@pytest.mark.parametrize("output", ["--json", None])
def test_an_interruption_ends_with_130_and_a_message(shop: Path, output: str | None) -> None:
    """Ctrl-C is answered in words, or as a document, never with a stack trace."""
    os.mkfifo(shop / ".env")
    child = subprocess.Popen(
        [*ESKER, "check", *([output] if output else [])],
        cwd=shop,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with (shop / ".env").open("w"):  # opens when the command has begun to read it
        child.send_signal(signal.SIGINT)
        answer = finish(child)
    assert answer.status == 130
    assert "Traceback" not in answer.stderr
    if output:
        assert answer.error["code"] == "ESK-RUN-001"
    else:
        assert answer.stderr.startswith("error ESK-RUN-001 interrupted")


@pytest.mark.process
def test_a_reader_that_goes_away_is_no_mistake(tmp_path: Path) -> None:
    """`esker schema | head -1` leaves no stack trace behind."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [*ESKER, "schema"],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert ended.stderr == ""
    assert ended.returncode in (0, 1)
