"""Jars come from a cache that is checked, or through Spark's resolver, and are loaded only unaltered."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from esker.engine.jars import Jar, locked_jars, missing_jars, provide_jars
from esker.engine.pins import RUNTIMES, jars_for, spark_minor
from esker.errors import JarAltered, JarsUnavailable
from tests.command import esker
from tests.engine.jar_cache import prepare_cache
from tests.folder import SPARK, Folder
from tests.servers.ports import free_port

_IVY = """<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root="http://127.0.0.1:{port}/"/></resolvers>
</ivysettings>
"""


def ivy_settings(folder: Path, port: int) -> dict[str, str]:
    """Write Ivy settings that know one registry, and return the Spark setting that names them."""
    target = folder / "ivysettings.xml"
    target.write_text(_IVY.format(port=port))
    return {"spark.jars.ivySettings": str(target)}


def copy_of(name: str, cache: Path) -> Path:
    """Put a copy of a jar into a cache, which a test may then alter."""
    [source] = provide_jars([name], {}, cache / "fetch.log")
    target = cache / "jars" / source.name
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes())
    return target


class Registry:
    """A registry on this machine that offers one jar."""

    def __init__(self, folder: Path, jar: Jar, content: bytes) -> None:
        group, artifact, version = jar.coordinate.split(":")
        place = folder / group.replace(".", "/") / artifact / version
        place.mkdir(parents=True)
        (place / jar.file_name).write_bytes(content)
        (place / f"{artifact}-{version}.pom").write_text(
            "<project><modelVersion>4.0.0</modelVersion>"
            f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            "<dependencies><dependency><groupId>never</groupId><artifactId>asked-for</artifactId>"
            "<version>1</version></dependency></dependencies></project>"
        )
        self.asked: list[str] = []
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(_Handler, self.asked, directory=str(folder))
        )
        self.port: int = self.server.server_address[1]


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, asked: list[str], *arguments: object, directory: str) -> None:
        self.asked = asked
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def log_message(self, format: str, *arguments: object) -> None:
        self.asked.append(self.path)


@pytest.fixture
def serve() -> Iterator[list[Registry]]:
    """Registries that a test adds here are stopped at its end."""
    registries: list[Registry] = []
    yield registries
    for registry in registries:
        registry.server.shutdown()
        registry.server.server_close()


def started(registry: Registry, serve: list[Registry]) -> Registry:
    threading.Thread(target=registry.server.serve_forever, daemon=True).start()
    serve.append(registry)
    return registry


@pytest.mark.parametrize("minor", RUNTIMES)
def test_the_lock_file_names_what_is_pinned(minor: str) -> None:
    """`make lock` was run after the last change of a version; each Spark has its own Iceberg."""
    locked = locked_jars(minor)
    assert {name: jar.coordinate for name, jar in locked.items()} == jars_for(minor)
    assert all(len(jar.sha256) == 64 for jar in locked.values())
    assert f"-{minor}_" in locked["iceberg"].coordinate
    assert locked["avro"].coordinate.partition(":")[2].partition(":")[2].startswith(f"{minor}.")


def test_an_altered_jar_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar is checked when it is first used, and again whenever its file has changed."""
    jar = copy_of("sqlite", tmp_path)
    monkeypatch.setenv("ESKER_CACHE", str(tmp_path))
    assert provide_jars(["sqlite"], {}, tmp_path / "log") == [jar]
    with jar.open("ab") as stream:
        stream.write(b"!")
    with pytest.raises(JarAltered) as caught:
        provide_jars(["sqlite"], {}, tmp_path / "log")
    assert str(jar) in caught.value.message
    assert locked_jars()["sqlite"].sha256 in caught.value.reason


def test_a_cache_that_others_own_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the note "this jar was checked" cannot be written, the jar is checked each time."""
    jar = copy_of("sqlite", tmp_path)
    monkeypatch.setenv("ESKER_CACHE", str(tmp_path))
    jar.with_suffix(".verified").mkdir()  # stands in the way, for root too
    assert provide_jars(["sqlite"], {}, tmp_path / "log") == [jar]


def test_a_cache_that_cannot_be_made_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the folder."""
    (tmp_path / "cache").write_text("a file, not a folder")
    monkeypatch.setenv("ESKER_CACHE", str(tmp_path / "cache"))
    with pytest.raises(JarsUnavailable) as caught:
        provide_jars(["sqlite"], {}, tmp_path / "log")
    assert str(tmp_path / "cache") in caught.value.reason


def test_only_jars_that_are_not_there_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the cache holds is not asked for again."""
    cache = prepare_cache(tmp_path / "cache", "sqlite")
    monkeypatch.setenv("ESKER_CACHE", str(cache))
    assert [jar.name for jar in missing_jars(["sqlite", "postgresql"])] == ["postgresql"]


@pytest.mark.process
def test_a_company_registry_is_used_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: list[Registry]
) -> None:
    """Jars come from the registry that Ivy's settings name, alone, and only when they are what is locked."""
    jar = locked_jars()["sqlite"]
    content = provide_jars(["sqlite"], {}, tmp_path / "log")[0].read_bytes()
    monkeypatch.setenv("ESKER_CACHE", str(tmp_path / "cache"))

    false = started(Registry(tmp_path / "false", jar, content + b"!"), serve)
    with pytest.raises(JarAltered):
        provide_jars(["sqlite"], ivy_settings(tmp_path, false.port), tmp_path / "log")
    assert list((tmp_path / "cache" / "jars").iterdir()) == [], "nothing of it stays"

    good = started(Registry(tmp_path / "good", jar, content), serve)
    [path] = provide_jars(["sqlite"], ivy_settings(tmp_path, good.port), tmp_path / "log")
    assert path.read_bytes() == content
    assert not [path for path in good.asked if "asked-for" in path], "dependencies are not resolved"


@pytest.mark.process
def test_a_full_cache_needs_no_network(tmp_path: Path) -> None:
    """A project on the embedded catalog starts with two jars in the cache and no registry in reach."""
    spark = {**SPARK, "conf": SPARK["conf"] | ivy_settings(tmp_path, free_port())}
    folder = Folder(tmp_path / "project", spark=spark)
    cache = prepare_cache(tmp_path / "cache", "iceberg", "sqlite")
    answer = esker(folder.path, "doctor", "--json", env={"ESKER_CACHE": str(cache)})
    assert answer.status == 0, answer.stdout + answer.stderr
    checks = {check["check"]: check["detail"] for check in answer.document["checks"]}
    assert checks["jars"] == f"2 in {cache / 'jars'}"


@pytest.mark.process
@pytest.mark.parametrize("catalog", ["sqlite", "jdbc"])
def test_missing_jars_without_a_network(catalog: str, tmp_path: Path) -> None:
    """The run ends with status 4; it names the jars that this project needs, the cache and a log."""
    spark = {**SPARK, "conf": SPARK["conf"] | ivy_settings(tmp_path, free_port())}
    keys = {} if catalog == "sqlite" else {"url": "jdbc:postgresql://127.0.0.1/lake", "warehouse": "lake"}
    folder = Folder(tmp_path / "project", spark=spark, catalog={"type": catalog, **keys})
    folder.write_csv("landing/a.csv", ["id"], [[1]])
    cache = prepare_cache(tmp_path / "cache", *(["iceberg"] if catalog == "jdbc" else []))
    answer = esker(folder.path, "run", "--json", env={"ESKER_CACHE": str(cache)})
    assert answer.status == 4, answer.stdout + answer.stderr
    assert answer.error["code"] == JarsUnavailable.code
    wanted = {"sqlite": ["iceberg", "sqlite"], "jdbc": ["postgresql"]}[catalog]
    assert answer.error["message"] == "cannot fetch " + ", ".join(
        jars_for(spark_minor())[name] for name in wanted
    )
    assert str(cache / "jars") in answer.error["remedy"]
    log = Path(answer.error["reason"].rpartition("(details: ")[2].rstrip(")"))
    assert "127.0.0.1" in log.read_text()
    left = {path.name for path in (cache / "jars").iterdir()}
    assert left == ({locked_jars()["iceberg"].file_name} if catalog == "jdbc" else set())
