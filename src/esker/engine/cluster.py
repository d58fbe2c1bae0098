"""Ask whether a Spark cluster answers, before Java starts.

Spark itself tries a dead master three times for 20 seconds each, which no setting shortens, and then
hands over a context that is already stopped.
"""

from __future__ import annotations

import socket

from esker.errors import ClusterUnreachable

_PATIENCE = 10.0


def check_cluster(master: str) -> None:
    """Raise ClusterUnreachable when none of a standalone cluster's masters accepts a connection.

    Other kinds of master have addresses of their own; Spark asks them itself.
    """
    scheme, _, addresses = master.partition("://")
    if scheme != "spark":
        return
    refusals = []
    for address in addresses.split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
        except ValueError:
            refusals.append(f"{address} is no address, write host:port")
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
        else:
            return
    raise ClusterUnreachable(master, "; ".join(refusals))
