"""Keys that a catalog hands out are renewed before they expire, and after a store refused them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from pyspark.errors import PySparkException

from esker.engine.iceberg.access import Access, CurrentAccess
from esker.engine.iceberg.client import _failure
from esker.errors import CatalogUnreachable, StoreUnreachable
from esker.project import secrets
from esker.project.secrets import redact

CLIENT = "org.apache.iceberg.aws.s3.S3FileIO"


def access(key: str, expires: float | None = None) -> Access:
    properties = {"s3.access-key-id": key, "s3.secret-access-key": "opensesame"}
    if expires is not None:
        properties["s3.session-token-expires-at-ms"] = str(int(expires * 1000))
    return Access(CLIENT, properties)


@dataclass
class Catalog:
    """Hands out keys that live for a time, each with the number of the request."""

    life: float | None
    now: float = 1_000.0
    asked: int = 0
    is_down: bool = False

    def ask(self) -> Access:
        self.asked += 1
        if self.is_down:
            raise CatalogUnreachable("lake", "connection refused")
        return access(f"key {self.asked}", self.now + self.life if self.life is not None else None)

    def open(self) -> CurrentAccess:
        return CurrentAccess(self.ask(), self.ask, lambda: self.now)


def test_keys_that_were_handed_out_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores say them in what they refuse. Of many, the newest are known; what is no secret stays."""
    monkeypatch.setattr(secrets, "_passing_secrets", OrderedDict())
    telling = {
        "s3.secret-access-key": "first+secret",
        "s3.session-token": "second/secret",
        "gcs.oauth2.token": "third.secret",
        "adls.sas-token.shop": "sig=fourth%3D",
        "token": "bearer of the catalog",
    }
    plain = {
        "s3.endpoint": "http://store:9000",
        "s3.session-token-expires-at-ms": "1700000000000",
        "client.refresh-credentials-endpoint": "http://catalog/v1/credentials",
    }
    Access(CLIENT, telling | plain)
    said = PySparkException(" ".join([*telling.values(), *plain.values()]))
    failure = _failure(said, "s3://lake/f")
    assert isinstance(failure, StoreUnreachable)
    told = failure.reason
    assert not [value for value in telling.values() if value in told]
    assert all(value in told for value in plain.values())
    for number in range(300):
        access(f"key {number}")
        Access(CLIENT, {"s3.session-token": f"token {number}"})
    assert redact("token 299 opensesame") == "******** ********"
    assert len(secrets._passing_secrets) < 200


def key(current: CurrentAccess) -> str | None:
    return current.get().store.keys[0]


@pytest.mark.parametrize(("life", "before"), [(3600.0, 300.0), (60.0, 12.0)])
def test_keys_are_renewed_before_they_expire(life: float, before: float) -> None:
    """Five minutes before, or a fifth of their life."""
    catalog = Catalog(life)
    current = catalog.open()
    catalog.now += life - before - 1
    assert key(current) == "key 1"
    catalog.now += 2
    assert key(current) == "key 2"
    assert (key(current), catalog.asked) == ("key 2", 2)


def test_catalog_that_is_down_is_asked_again_after_a_pause() -> None:
    """Until then the keys are taken that there are: they may be valid still."""
    catalog = Catalog(3600)
    current = catalog.open()
    catalog.now += 3500
    catalog.is_down = True
    assert [key(current), key(current), catalog.asked] == ["key 1", "key 1", 2]
    catalog.is_down = False
    catalog.now += 11
    assert key(current) == "key 3"


def test_refused_keys_are_renewed_where_nobody_says_when_they_expire() -> None:
    """Once, whoever is refused; a refusal that has another reason is not repeated."""
    catalog = Catalog(None)
    current = catalog.open()
    first = current.get()
    catalog.now += 100_000
    assert current.get() is first
    second = current.after_refusal(first)
    assert second is not None
    assert second.store.keys[0] == "key 2"
    assert (current.after_refusal(first), catalog.asked) == (second, 2)
    assert current.after_refusal(second) is None  # a moment ago: it is not the keys

    own = CurrentAccess(access("declared"))
    assert own.after_refusal(own.get()) is None


@pytest.mark.parametrize(
    ("properties", "expires"),
    [
        ({}, None),
        ({"s3.session-token-expires-at-ms": "1700000000000"}, 1_700_000_000.0),
        ({"gcs.oauth2.token-expires-at": "1700000000500"}, 1_700_000_000.5),
        ({"adls.sas-token-expires-at-ms.museum": "1700000000000", "adls.sas-token.museum": "x"}, 1.7e9),
        ({"s3.session-token-expires-at-ms": "soon"}, None),
    ],
)
def test_moments_at_which_keys_expire(properties: Mapping[str, str], expires: float | None) -> None:
    assert Access(CLIENT, properties).expires == expires
