"""A real SeaweedFS in a temporary folder, on 127.0.0.1: an S3 store and a REST catalog in one process."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs
from pyiceberg.catalog import Catalog, load_catalog

from tests.needs import found, missing
from tests.servers.ports import free_port, free_ports
from tests.servers.waiting import end, wait_until

KEY = "esker-tests"
BUCKET = "raw"
"""An ordinary bucket, that takes any file. Buckets of tables take only what belongs to tables."""


@dataclass(frozen=True)
class SeaweedFS:
    """A running server."""

    s3_port: int
    rest_port: int
    secret: str
    folder: Path
    weed: Path
    master: str
    filer: str
    command: list[str] = field(default_factory=list)
    """How it was started."""
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.s3_port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that project files name."""
        return {
            "S3_KEY": KEY,
            "S3_SECRET": self.secret,
            "CATALOG_CREDENTIAL": f"{KEY}:{self.secret}",
        }

    def new_warehouse(self) -> str:
        """Make an empty warehouse for tables."""
        name = f"lake{next(self._count)}"
        said = self._shell(f"s3tables.bucket -create -name {name} -account admin")
        wait_until(lambda: self.has_warehouse(name), f"warehouse: {said}", 30)
        return f"s3://{name}"

    def exceed_quota(self, warehouse: str) -> None:
        """Fill a warehouse beyond its quota, and return when the server takes nothing more."""
        bucket = warehouse.removeprefix("s3://")
        self.put(f"{warehouse}/filling/up/data/{next(self._count)}.parquet", bytes(2_000_000))
        self._shell(f"s3.bucket.quota -name={bucket} -op=set -sizeMB=1")
        enforce = "s3.bucket.quota.enforce -apply"
        wait_until(lambda: f"changing bucket {bucket} to read only" in self._shell(enforce), "quota", 60)

    def lift_quota(self, warehouse: str) -> None:
        """Let a warehouse take more again."""
        self._shell(f"s3.bucket.quota -name={warehouse.removeprefix('s3://')} -op=remove")

    def _shell(self, order: str) -> str:
        """Tell the server something, and return all that it says."""
        shell = [str(self.weed), "shell", f"-master={self.master}", f"-filer={self.filer}"]
        done = subprocess.run(
            shell, input=f"{order}\n", text=True, capture_output=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    def new_prefix(self) -> str:
        """Return a place in the ordinary bucket that nobody uses."""
        return f"s3://{BUCKET}/{next(self._count)}"

    def put(self, location: str, content: bytes) -> None:
        """Write a file into a bucket."""
        with self._files.open_output_stream(location.removeprefix("s3://"), compression=None) as stream:
            stream.write(content)

    def list(self, location: str) -> list[str]:
        """Return the paths of all files below a place."""
        selector = fs.FileSelector(location.removeprefix("s3://"), recursive=True)
        return [each.path for each in self._files.get_file_info(selector) if each.is_file]

    @property
    def _files(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=KEY, secret_key=self.secret, endpoint_override=self.endpoint, region="us-east-1"
        )

    def store(self, endpoint: str | None = None) -> dict[str, Any]:
        """Return the store as a project file declares it."""
        return {
            "type": "s3",
            "endpoint": endpoint or self.endpoint,
            "path_style": True,
            "access_key": "${S3_KEY}",
            "secret_key": "${S3_SECRET}",
        }

    def catalog(self, warehouse: str, uri: str | None = None) -> dict[str, Any]:
        """Return the catalog as a project file declares it."""
        return {
            "type": "rest",
            "uri": uri or self.uri,
            "warehouse": warehouse,
            "credential": "${CATALOG_CREDENTIAL}",
            "oauth2_server_uri": f"{self.uri}/v1/oauth/tokens",
        }

    def pyiceberg(self, warehouse: str) -> Catalog:
        """Return a warehouse as PyIceberg sees it."""
        return load_catalog(
            "lake",
            type="rest",
            uri=self.uri,
            warehouse=warehouse,
            token=self.token(),
            **{
                "s3.endpoint": self.endpoint,
                "s3.access-key-id": KEY,
                "s3.secret-access-key": self.secret,
                "s3.region": "us-east-1",
            },
        )

    def token(self) -> str:
        """Return a token of the catalog's."""
        form = {"grant_type": "client_credentials", "client_id": KEY, "client_secret": self.secret}
        request = f"{self.uri}/v1/oauth/tokens"
        with urllib.request.urlopen(request, urllib.parse.urlencode(form).encode(), timeout=10) as answer:
            return str(json.load(answer)["access_token"])

    def has_warehouse(self, name: str) -> bool:
        """Tell whether a warehouse can be used: the server answers questions about itself before."""
        try:
            address = f"{self.uri}/v1/{name}/namespaces"
            request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.token()}"})
            urllib.request.urlopen(request, timeout=10).close()
        except (OSError, urllib.error.HTTPError):
            return False
        return True


@contextmanager
def running_seaweedfs(store_address: str | None = None) -> Iterator[SeaweedFS]:
    """Start a server, and stop it and remove its files at the end.

    `store_address` is where its catalog tells clients to find the store, whatever they believe.
    """
    weed = program()
    if weed is None:
        missing("SeaweedFS", "install it into .venv: make servers")
    folder = Path(tempfile.mkdtemp(prefix="esker-seaweedfs-"))
    names = ["s3.port", "s3.port.grpc", "s3.port.iceberg", "master.port", "master.port.grpc"]
    names += ["volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    ports |= {"admin.port": (admin := _port_with_another()), "admin.port.grpc": admin + 10_000}
    server = SeaweedFS(
        s3_port=ports["s3.port"],
        rest_port=ports["s3.port.iceberg"],
        secret=f"opensesame-{secrets.token_hex(8)}",
        folder=folder,
        weed=weed,
        master=f"127.0.0.1:{ports['master.port']}.{ports['master.port.grpc']}",
        filer=f"127.0.0.1:{ports['filer.port']}.{ports['filer.port.grpc']}",
    )
    (folder / "data").mkdir()
    command = [str(weed), "mini", f"-dir={folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [
        "-tableBucket=lake",
        f"-bucket={BUCKET}",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.port.lance=0",
    ]
    command += [f"-{name}={port}" for name, port in ports.items()]
    if store_address is not None:
        command.append(f"-s3.externalUrl={store_address}")
    server.command.extend(command)
    try:
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=os.environ | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": server.secret},
            )
        try:
            wait_until(lambda: process.poll() is not None or server.has_warehouse("lake"), "SeaweedFS", 60)
            assert process.poll() is None, (folder / "log").read_text()
            yield server
        finally:
            end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _port_with_another() -> int:
    """Return a free port whose number plus ten thousand is free too: one of its parts always dials that."""
    while True:
        port = free_port()
        with socket.socket() as other:
            if port + 10_000 < 65_536 and other.connect_ex(("127.0.0.1", port + 10_000)) != 0:
                return port


def program() -> Path | None:
    """Return the server's program, if it is installed."""
    place = found(".venv/bin/weed") or shutil.which("weed")
    return Path(place) if place is not None else None
