"""Real search servers in temporary folders, on 127.0.0.1: OpenSearch and Elasticsearch."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.needs import missing
from tests.servers.ports import free_ports
from tests.servers.waiting import wait_until

_CACHE = Path(__file__).parents[2] / ".cache"
_SETTINGS: dict[str, Any] = {
    "cluster.name": "esker-tests",
    "network.host": "127.0.0.1",
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": False,
}


@dataclass(frozen=True)
class SearchServer:
    """A running server."""

    type: str
    """Of connections and targets."""
    address: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server something, and return its answer; None for what is not there."""
        content = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise AssertionError(error.read()) from error
            return None
        return json.loads(text) if text else True

    def documents(self, index: str) -> dict[str, Any]:
        """Return all documents by id, as a search finds them."""
        self.ask("POST", f"/{index}/_refresh")
        found = self.ask("POST", f"/{index}/_search", {"size": 10_000, "query": {"match_all": {}}})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    def version(self, index: str, id: str) -> int:
        """Return the version that a document has."""
        version: int = self.ask("GET", f"/{index}/_doc/{id}")["_version"]
        return version

    def behind(self, alias: str) -> list[str]:
        """Return the indices that an alias leads to."""
        return sorted(self.ask("GET", f"/_alias/{alias}") or ())

    def is_ready(self) -> bool:
        """Tell whether an index can be made: before that, a server says that it is well."""
        try:
            made = self.ask("PUT", "/ready", {"settings": {"number_of_replicas": 0}})
            self.ask("DELETE", "/ready")
        except (OSError, AssertionError):
            return False
        return bool(made and made["shards_acknowledged"])


@contextmanager
def running_opensearch() -> Iterator[SearchServer]:
    """Start OpenSearch, and stop it and remove its files at the end."""
    home = _CACHE / "opensearch" / "opensearch-3.6.0"
    if not home.is_dir():
        missing("OpenSearch", "install it: make servers")
    java = _whole_java(21, 99)
    with _running("opensearch", home, {"OPENSEARCH_JAVA_HOME": str(java)}, {}) as server:
        yield server


@contextmanager
def running_elasticsearch() -> Iterator[SearchServer]:
    """Start Elasticsearch, and stop it and remove its files at the end."""
    home = _CACHE / "elasticsearch" / "elasticsearch-8.19.21"
    if not home.is_dir():
        missing("Elasticsearch", "install it: make servers")
    java = _whole_java(17, 21)
    with _running(
        "elasticsearch", home, {"ES_JAVA_HOME": str(java)}, {"xpack.security.enabled": False}
    ) as server:
        yield server


@contextmanager
def _running(
    type: str, home: Path, environment: Mapping[str, str], settings: Mapping[str, Any]
) -> Iterator[SearchServer]:
    prefix = "OPENSEARCH" if type == "opensearch" else "ES"
    port, transport = free_ports(2)
    # They refuse to run as root, and pytest's folders are closed to other users.
    as_user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix=f"esker-{type}-"))
    server = SearchServer(type, f"http://127.0.0.1:{port}")
    try:
        own = {"http.port": port, "transport.port": transport}
        paths = {"path.data": str(folder / "data"), "path.logs": str(folder / "logs")}
        _configure(home, folder, type, {**_SETTINGS, **settings, **own, **paths})
        is_root = os.geteuid() == 0
        if is_root:
            for place in (folder, *folder.rglob("*")):
                shutil.chown(place, as_user["user"], as_user["group"])
        # A checkout may lie where nobody else may look.
        program = shutil.copytree(home, folder / "program", copy_function=_link) / "bin" / type
        told = {f"{prefix}_PATH_CONF": str(folder / "config"), f"{prefix}_TMPDIR": str(folder / "tmp")}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [program],
                stdout=log,
                stderr=log,
                cwd=folder,
                env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment, **told},
                start_new_session=True,  # its launcher starts another Java, and does not always end it
                **(as_user if is_root else {}),
            )
        try:
            wait_until(lambda: process.poll() is not None or server.is_ready(), type, 240)
            assert process.poll() is None, (folder / "log").read_text()[-4000:]
            yield server
        finally:
            _end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _configure(home: Path, folder: Path, type: str, settings: Mapping[str, Any]) -> None:
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir()
    shutil.copytree(home / "config", folder / "config")
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    (folder / "config" / f"{type}.yml").write_text(lines)
    options = folder / "config" / "jvm.options"
    # Paths there are below the program's own folder, which others use at the same time.
    kept = [line for line in options.read_text().splitlines() if "logs/" not in line]
    options.write_text("\n".join(kept) + "\n")
    (folder / "config" / "jvm.options.d").mkdir(exist_ok=True)
    memory = "-Xms384m\n-Xmx384m\n-XX:TieredStopAtLevel=1\n"
    (folder / "config" / "jvm.options.d" / "memory.options").write_text(memory)


def _link(place: str, copy: str) -> None:
    try:
        os.link(place, copy)
    except OSError:  # on another disk
        shutil.copy2(place, copy)


def _end(process: subprocess.Popen[bytes]) -> None:
    for word in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, word)
            process.wait(timeout=30)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _whole_java(least: int, most: int) -> Path:
    """Return the home of a Java with all its modules: without some, no index can be made."""
    places = [Path(home) for home in (os.environ.get("JAVA_HOME"),) if home]
    places += sorted(Path("/usr/lib/jvm").glob("*/"))
    for place in places:
        release = place / "release"
        text = release.read_text() if release.is_file() else ""
        version = re.search(r'JAVA_VERSION="(\d+)', text)
        modules = re.search(r'MODULES="([^"]*)"', text)
        is_whole = modules is None or "jdk.localedata" in modules[1].split()
        if version is not None and least <= int(version[1]) <= most and is_whole:
            return place
    return missing(f"Java {least} with all its modules", "install a JDK below /usr/lib/jvm, or set JAVA_HOME")
