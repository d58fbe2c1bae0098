"""Variables and secrets: where values come from, and where they never go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import InvalidProject
from esker.project import Project, load_project, secrets
from esker.project.secrets import MissingVariables, redact, remember_secret, resolve

SECRET = 'hunter2 "über\\geheim"'
PROJECT = """\
project: shop
catalog: {type: jdbc, url: "jdbc:postgresql://db/lake", user: etl, password: "${LAKE_LOGIN}", warehouse: w}
spark: {conf: {spark.hadoop.fs.s3a.secret.key: "${S3_SECRET_KEY}"}}
"""


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget afterwards which secrets were met: other tests share this process."""
    before = set(secrets._known_secrets)
    try:
        yield
    finally:
        secrets._known_secrets.intersection_update(before)


@pytest.fixture(scope="module", autouse=True)
def _leave_nothing_behind() -> Iterator[None]:
    with forgetting():
        yield


def load(folder: Path, text: str, env: str | None = None) -> Project:
    (folder / "esker.yml").write_text(text, encoding="utf-8")
    return load_project(folder, env)


def problems(folder: Path, text: str, env: str | None = None) -> list[str]:
    with pytest.raises(InvalidProject) as caught:
        load(folder, text, env)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${A}", "alpha"),
        ("${A}/${B}-${A}", "alpha/beta-alpha"),
        ("${C:-gamma}", "gamma"),
        ("${A:-gamma}", "alpha"),
        ("${C:-}", ""),
        ("${EMPTY:-gamma}", "gamma"),
        ("${EMPTY}", ""),
        ("$${A}", "${A}"),
        ("5 $$", "5 $"),
        ("$A", "$A"),
        ("$$$${A}", "$${A}"),
    ],
)
def test_variables_are_replaced_as_in_a_shell(text: str, expected: str) -> None:
    """`${NAME}`, `${NAME:-default}` and `$$` mean what they mean in a shell."""
    assert resolve(text, {"A": "alpha", "B": "beta", "EMPTY": ""}) == expected


def test_all_unset_variables_of_a_text_are_named() -> None:
    """One message is enough to set everything that is missing."""
    with pytest.raises(MissingVariables) as caught:
        resolve("${X}${A}${Y}", {"A": "a"})
    assert caught.value.names == ["X", "Y"]


@given(st.text())
def test_a_value_is_taken_as_it_is(value: str) -> None:
    """What a variable holds is never looked through for further variables."""
    assert resolve("${A}", {"A": value}) == value


@given(st.text())
def test_doubling_dollars_keeps_any_text(text: str) -> None:
    """Every text can be written in the project file."""
    assert resolve(text.replace("$", "$$"), {}) == text


def test_an_unset_variable_is_a_problem_with_a_place_and_a_remedy(tmp_path: Path) -> None:
    """The message says which variable, where it stands and where to set it; nothing follows from it."""
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, "project: shop\nspark:\n  master: ${CLUSTER_URL}\n")
    (problem,) = caught.value.problems
    assert str(problem) == "esker.yml:3:3: spark.master: variable CLUSTER_URL is not set"
    assert "CLUSTER_URL=… into .env" in caught.value.remedy


def test_the_environment_wins_over_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.env` holds what the environment does not say."""
    (tmp_path / ".env").write_text("HERE=from-file\nTHERE=from-file\n")
    monkeypatch.setenv("HERE", "from-environment")
    monkeypatch.delenv("THERE", raising=False)
    project = load(tmp_path, "project: shop\nspark: {conf: {a: '${HERE}', b: '${THERE}'}}\n")
    assert project.spark.conf == {"a": "from-environment", "b": "from-file"}


def test_only_the_chosen_environment_needs_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody needs production's passwords to check a project on a laptop."""
    monkeypatch.delenv("PROD_MASTER", raising=False)
    text = "project: shop\nenvironments:\n  prod:\n    spark: {master: '${PROD_MASTER}'}\n  test: {}\n"
    assert load(tmp_path, text).spark.master == "local[*]"
    assert load(tmp_path, text, "test").spark.master == "local[*]"
    assert problems(tmp_path, text, "prod") == [
        "esker.yml:4:13: spark.master: variable PROD_MASTER is not set"
    ]
    monkeypatch.setenv("PROD_MASTER", "yarn")
    assert load(tmp_path, text, "prod").spark.master == "yarn"


def test_a_variable_in_defaults_is_needed_by_the_pipelines_that_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A default that every pipeline overrides needs no variable."""
    monkeypatch.delenv("LANDING", raising=False)
    text = """\
project: s
defaults:
  source: {type: files, format: csv, path: '${LANDING}'}
pipelines:
  a: {table: s.a}
"""
    assert problems(tmp_path, text) == [
        "esker.yml:3:38: pipelines.a.source.path: variable LANDING is not set"
    ]
    assert load(tmp_path, text.replace("a: {table: s.a}", "a: {table: s.a, source: {path: x}}")).pipelines


@pytest.mark.parametrize("password", ["hunter2", "${LAKE_LOGIN:-hunter2}", "$LAKE_LOGIN"])
def test_a_secret_that_stands_in_the_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """Project files are shared and kept for ever: passwords come from elsewhere, defaults included."""
    monkeypatch.delenv("LAKE_LOGIN", raising=False)
    monkeypatch.setenv("S3_SECRET_KEY", SECRET)
    (problem,) = problems(tmp_path, PROJECT.replace("${LAKE_LOGIN}", password))
    column = PROJECT.splitlines()[1].index("password:") + 1
    assert problem.startswith(f"esker.yml:2:{column}: catalog.password: a secret stands here as text")
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://etl:pw@db/lake",
        "jdbc:postgresql://db/lake?user=etl&password=pw",
    ],
)
def test_a_catalog_address_with_credentials_is_refused(tmp_path: Path, url: str) -> None:
    """An address is printed in plans and errors, so it holds no password."""
    text = f"project: shop\ncatalog: {{type: jdbc, url: '{url}', warehouse: w}}\n"
    (problem,) = problems(tmp_path, text)
    assert "the url holds credentials; write them as user: and password: ${NAME}" in problem


@pytest.mark.parametrize("url", ["postgresql://etl:pw@db/state", "postgresql://db/state?password=pw"])
def test_a_state_address_with_credentials_is_refused(tmp_path: Path, url: str) -> None:
    """The same holds for the state database."""
    (problem,) = problems(tmp_path, f"project: shop\nstate: {{url: '{url}'}}\n")
    assert "the url holds credentials" in problem


def test_secrets_are_used_but_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded project knows its secrets and prints none, not even those inside plain settings."""
    monkeypatch.setenv("LAKE_LOGIN", SECRET)
    monkeypatch.setenv("S3_SECRET_KEY", "s3-very-secret")
    project = load(tmp_path, PROJECT)
    assert project.catalog.type == "jdbc"
    assert project.catalog.password is not None
    assert project.catalog.password.get_secret_value() == SECRET
    assert project.spark.conf == {"spark.hadoop.fs.s3a.secret.key": "s3-very-secret"}
    for shown in (repr(project), str(project), repr(project.spark), redact(project.model_dump_json())):
        assert "hunter2" not in shown
        assert "s3-very-secret" not in shown
    assert "hunter2" not in project.model_dump_json()


def test_a_secret_of_an_environment_that_was_not_chosen_is_not_shown(tmp_path: Path) -> None:
    """What stands below environments: is merged in or left alone, and never printed."""
    project = load(tmp_path, "project: shop\nenvironments: {prod: {state: {password: hunter2}}}\n")
    assert "hunter2" not in repr(project) + project.model_dump_json()


def test_a_secret_in_the_wrong_place_is_masked_in_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages repeat wrong values, but not when a value is a secret."""
    monkeypatch.setenv("LAKE_PASSWORD", "hunter2-in-the-wrong-place")
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, "project: '${LAKE_PASSWORD}'\n")
    error = caught.value
    assert "********" in error.message
    assert "hunter2" not in str(error) + error.reason + error.remedy + json.dumps(error.as_json())


# Without the mask's own character: text around a mask could complete such a secret again.
SECRETS = st.text(st.characters(exclude_characters="*", exclude_categories=["Cs"]), min_size=4)


@given(SECRETS, st.text(), st.text())
def test_redacted_text_and_json_hold_no_secret(secret: str, before: str, after: str) -> None:
    """A remembered secret is masked in text, and inside JSON however that is escaped."""
    with forgetting():
        remember_secret(secret)
        assert secret not in redact(before + secret + after)
        for ascii_only in (True, False):
            assert secret not in json.loads(redact(json.dumps(secret, ensure_ascii=ascii_only)))


def test_very_short_values_are_not_masked() -> None:
    """Masking `a` or `1` everywhere would make every message unreadable."""
    with forgetting():
        remember_secret("1")
        assert redact("row 1 of 11") == "row 1 of 11"
