"""The jars that Spark needs: an exact list with checksums, fetched once, then read from a cache.

Fetching goes through Spark's own resolver, so that a company's Ivy settings and mirrors hold
(`spark.jars.ivySettings`, `spark.jars.repositories` in `spark: {conf: …}`). Nothing is resolved
transitively: what is loaded is what `jars.lock.json` names, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from esker.engine.cache import cache_folder
from esker.engine.compat import resolve_jars
from esker.engine.gateway import launch, stop
from esker.engine.pins import RUNTIMES, SHARED_JARS, spark_minor
from esker.errors import JarAltered, JarsUnavailable

_EVERY = "every Spark"
"""Section of the lock file beside those of minor versions."""


@dataclass(frozen=True)
class Jar:
    """One line of the lock file."""

    name: str
    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def locked_jars(minor: str | None = None) -> dict[str, Jar]:
    """Return the lock file's jars for a minor version of Spark by name. Default: the installed one's."""
    lock = json.loads(files("esker.engine").joinpath("jars.lock.json").read_text())
    found = lock[minor or spark_minor()] | lock[_EVERY]
    return {name: Jar(name, entry["coordinate"], entry["sha256"]) for name, entry in found.items()}


def jar_folder() -> Path:
    """Return the folder where fetched jars are kept."""
    return cache_folder() / "jars"


def missing_jars(names: Iterable[str], minor: str | None = None) -> list[Jar]:
    """Return those of the named jars that are not in the cache."""
    lock = locked_jars(minor)
    return [lock[name] for name in names if not (jar_folder() / lock[name].file_name).is_file()]


def provide_jars(
    names: Iterable[str], conf: Mapping[str, str], log: Path, minor: str | None = None
) -> list[Path]:
    """Return the paths of the named jars, fetching those that the cache lacks.

    They are for the installed Spark, or for another minor version. Raises JarsUnavailable when they cannot be
    fetched, JarAltered when a checksum is wrong.
    """
    names = list(names)
    folder = jar_folder()
    if missing := missing_jars(names, minor):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(missing, folder, conf, log)
        except OSError as error:
            raise JarsUnavailable(
                [jar.coordinate for jar in missing], str(folder), str(error), str(log)
            ) from error
    return [_verified(locked_jars(minor)[name], folder) for name in names]


def digest(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def resolve(coordinates: Iterable[str], into: Path, conf: Mapping[str, str], log: Path) -> list[Path]:
    """Fetch jars by coordinate with Spark's resolver, without what they depend on."""
    gateway = launch({}, log)
    try:
        repositories, settings = conf.get("spark.jars.repositories"), conf.get("spark.jars.ivySettings")
        found = resolve_jars(gateway.jvm, ",".join(coordinates), str(into), repositories, settings)
        iterator = found.iterator()
        paths = []
        while iterator.hasNext():
            paths.append(Path(iterator.next()))
        return paths
    finally:
        stop(gateway)


def _fetch(jars: list[Jar], folder: Path, conf: Mapping[str, str], log: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        try:
            paths = resolve([jar.coordinate for jar in jars], Path(scratch), conf, log)
        except Exception as error:  # the resolver throws plain RuntimeException for every cause
            raise JarsUnavailable(
                [jar.coordinate for jar in jars], str(folder), _first_line(error), str(log)
            ) from error
        for jar in jars:
            path = next((path for path in paths if path.name.endswith(jar.file_name)), None)
            if path is None:
                raise JarsUnavailable([jar.coordinate], str(folder), "the registry has no such jar", str(log))
            _check(jar, path)
            # A rename is atomic: another process sees either no jar or a whole one.
            path.replace(folder / jar.file_name)


def _verified(jar: Jar, folder: Path) -> Path:
    """Return a cached jar, hashing it only when it is not the file that was hashed last time."""
    path = folder / jar.file_name
    stamp = path.with_suffix(".verified")
    facts = path.stat()
    seal = f"{jar.sha256} {facts.st_size} {facts.st_mtime_ns}"
    if not stamp.is_file() or stamp.read_text() != seal:
        _check(jar, path)
        fresh = stamp.with_name(f"{stamp.name}.{os.getpid()}")
        with suppress(OSError):  # a cache that only others may write to: hash again next time
            fresh.write_text(seal)
            fresh.replace(stamp)
    return path


def _check(jar: Jar, path: Path) -> None:
    if (actual := digest(path)) != jar.sha256:
        raise JarAltered(str(path), jar.sha256, actual)


def _first_line(error: Exception) -> str:
    java: Any = getattr(error, "java_exception", None)
    text = str(java.getMessage()) if java is not None else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def write_lock(target: Path, log: Path) -> None:
    """Fetch every jar anew and write its checksum into the lock file (`make lock`)."""
    sections = {_EVERY: SHARED_JARS} | {minor: runtime.jars for minor, runtime in RUNTIMES.items()}
    # Each by itself: the resolver takes one version of a jar and drops the others.
    lock = {section: _locked(coordinates, log) for section, coordinates in sections.items()}
    target.write_text(json.dumps(lock, indent=2) + "\n")


def _locked(coordinates: Mapping[str, str], log: Path) -> dict[str, dict[str, str]]:
    scratch = Path(tempfile.mkdtemp(prefix="esker-lock-"))
    try:
        paths = resolve(coordinates.values(), scratch, {}, log)
        lock = {}
        for name, coordinate in coordinates.items():
            jar = Jar(name, coordinate, "")
            path = next(path for path in paths if path.name.endswith(jar.file_name))
            lock[name] = {"coordinate": coordinate, "sha256": digest(path)}
        return lock
    finally:
        shutil.rmtree(scratch)
