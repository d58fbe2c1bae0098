"""An index of Elasticsearch or OpenSearch, behind an alias."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from esker.deliver.targets.bulk import BulkSender
from esker.deliver.targets.target import Index, Sender
from esker.deliver.targets.web import Answer, Web, told
from esker.errors import IndexGone, IndexNotSwitchable, TargetRefused, TargetUnavailable
from esker.project import Project
from esker.project.connections import SearchConnection
from esker.project.secrets import remember_secrets_of
from esker.project.targets import SearchTarget

_JSON = {"Content-Type": "application/json"}
_DELETES_REMEMBERED = "1h"
"""Servers forget which version was deleted after a minute; a write that was held up for longer than that
would bring the document back."""
_OF_ONE_INDEX = (
    "uuid",
    "creation_date",
    "provided_name",
    "version",
    "resize",
    "routing",
    "blocks",
    "history",
)
"""Settings that cannot be those of another index."""
_RIGHTS = "See whether user, password or api_key of the connection are right, and what they may do."


@dataclass(frozen=True)
class SearchIndex(Index):
    """The index that an alias leads to, or the one that is named."""

    declared: SearchTarget
    connection: SearchConnection
    ca_file: str | None
    name: str | None = None

    @classmethod
    def of(cls, declared: SearchTarget, project: Project) -> SearchIndex:
        connection = project.connections[declared.connection]
        assert isinstance(connection, SearchConnection), "the project was checked"
        ca_file = str(project.path(connection.ca_file)) if connection.ca_file is not None else None
        return cls(declared, connection, ca_file)

    def open(self) -> Sender:
        web = self._web()
        try:
            is_alias = self._prepare(web)
        except BaseException:
            web.close()
            raise
        return BulkSender(
            web,
            self.describe(),
            self._place,
            self.connection.retries,
            is_alias=is_alias,
            packed=self.connection.gzip,
        )

    def describe(self) -> str:
        return f'index "{self._place}" of {self.connection.hosts[0]}'

    def begin(self) -> None:
        with self._opened() as web:
            if not self._behind(web) and not self._is_there(web, self.declared.index):
                self._begin(web)

    def make(self, name: str) -> None:
        if name == self.declared.index:
            raise IndexNotSwitchable(name, "A new index needs a name of its own, other than the alias.")
        with self._opened() as web:
            self._refuse_plain_index(web, self._behind(web))
            self._create(web, name, self._like_the_present(web))

    def into(self, name: str) -> SearchIndex:
        return replace(self, name=name)

    def count(self) -> int:
        with self._opened() as web:
            answer = web.ask("POST", f"/{self._place}/_refresh")
            if answer.status_code == 404:
                return 0
            self._understood(answer)
            found = self._understood(web.ask("GET", f"/{self._place}/_count"))
            if found["_shards"]["failed"]:
                raise TargetUnavailable(self.describe(), "Some of its shards do not answer.", 1)
            return int(found["count"])

    def switch(self, name: str) -> str | None:
        alias = self.declared.index
        with self._opened() as web:
            before = self._behind(web)
            self._refuse_plain_index(web, before)
            others = [index for index in before if index != name]
            actions: list[dict[str, Any]] = [{"remove": {"index": each, "alias": alias}} for each in others]
            actions.append({"add": {"index": name, "alias": alias}})
            answer = web.ask("POST", "/_aliases", json.dumps({"actions": actions}).encode(), _JSON)
            # After a lost answer the same is asked again, and what is gone cannot be removed.
            if answer.is_success or set(self._behind(web)) != {name}:
                self._understood(answer)
            return _written_to(before, others)

    @property
    def _place(self) -> str:
        return self.name or self.declared.index

    def _web(self) -> Web:
        remember_secrets_of(self.connection)
        headers: dict[str, str] = {}
        auth = None
        if self.connection.api_key is not None:
            headers["Authorization"] = f"ApiKey {self.connection.api_key.get_secret_value()}"
        elif self.connection.user is not None and self.connection.password is not None:
            auth = (self.connection.user, self.connection.password.get_secret_value())
        return Web(
            self.describe(),
            self.connection.hosts,
            self.connection.timeout,
            self.connection.retries,
            auth=auth,
            headers=headers,
            ca_file=self.ca_file,
        )

    @contextmanager
    def _opened(self) -> Iterator[Web]:
        web = self._web()
        try:
            yield web
        finally:
            web.close()

    def _prepare(self, web: Web) -> bool:
        """See that there is something to write to; tell whether it is an alias."""
        if self.name is not None:
            if not self._is_there(web, self.name):
                raise TargetRefused(self.describe(), "There is no such index.", "Make it: reindex.")
            return False
        if behind := self._behind(web):
            if len(behind) > 1 and not _writable(behind):
                names = ", ".join(sorted(behind))
                why = f"The alias leads to several indices ({names}), none of which is the one to write to."
                raise TargetRefused(self.describe(), why, "Let the alias lead to one of them.")
            return True
        if self._is_there(web, self.declared.index):
            return False
        why = f'There is no index or alias "{self.declared.index}" any more.'
        raise IndexGone(self.describe(), why)

    def _begin(self, web: Web) -> None:
        """Make the first index and the alias, in one step. Another task may be faster."""
        body = self._declared_body() | {"aliases": {self.declared.index: {}}}
        number = 1
        while not self._create(web, f"{self.declared.index}-{number:06d}", body) and not self._behind(web):
            number += 1

    def _create(self, web: Web, name: str, body: Mapping[str, Any]) -> bool:
        """Make an index; False if there is one of that name."""
        answer = web.ask("PUT", f"/{name}", json.dumps(body).encode(), _JSON)
        if answer.status_code == 400 and "resource_already_exists_exception" in answer.text:
            return False
        self._understood(answer)
        return True

    def _declared_body(self) -> dict[str, Any]:
        settings = {"index.gc_deletes": _DELETES_REMEMBERED, **_flat(self.declared.settings)}
        body: dict[str, Any] = {"settings": settings}
        if self.declared.mappings:
            body["mappings"] = self.declared.mappings
        return body

    def _like_the_present(self, web: Web) -> dict[str, Any]:
        body = self._declared_body()
        behind = self._behind(web)
        present = _written_to(behind, list(behind)) or self.declared.index
        if not self._is_there(web, present):
            return body
        found = self._understood(web.ask("GET", f"/{present}"))[present]
        if "mappings" not in body:
            body["mappings"] = found["mappings"]
        kept = {key: value for key, value in found["settings"]["index"].items() if key not in _OF_ONE_INDEX}
        if not self.declared.settings:
            body["settings"] |= _flat(kept)
        return body

    def _behind(self, web: Web) -> dict[str, Any]:
        """Return the indices that the alias leads to, each with what is said of the alias there."""
        answer = web.ask("GET", f"/_alias/{self.declared.index}")
        if answer.status_code == 404:
            return {}
        found = self._understood(answer)
        return {index: facts["aliases"][self.declared.index] for index, facts in found.items()}

    def _refuse_plain_index(self, web: Web, behind: Mapping[str, Any]) -> None:
        alias = self.declared.index
        if not behind and self._is_there(web, alias):
            why = f'There is an index of the name "{alias}", which can be written to but is no alias.'
            raise IndexNotSwitchable(alias, why)

    def _is_there(self, web: Web, name: str) -> bool:
        answer = web.ask("HEAD", f"/{name}")
        if answer.status_code == 404:
            return False
        if not answer.is_success:
            raise TargetRefused(self.describe(), told(answer), _RIGHTS)
        return True

    def _understood(self, answer: Answer) -> dict[str, Any]:
        """Return the document of an answer, or raise TargetRefused."""
        if answer.status_code in (401, 403):
            raise TargetRefused(self.describe(), told(answer), _RIGHTS)
        if not answer.is_success:
            raise TargetRefused(self.describe(), told(answer))
        try:
            found: dict[str, Any] = json.loads(answer.content)
        except ValueError:
            why = f"Its answer is not that of a search server: {answer.text[:100]}"
            raise TargetRefused(
                self.describe(), why, "See whether hosts: are those of a search server."
            ) from None
        return found


def _writable(behind: Mapping[str, Any]) -> list[str]:
    return [index for index, facts in behind.items() if facts.get("is_write_index")]


def _written_to(behind: Mapping[str, Any], among: list[str]) -> str | None:
    """Return the one of some indices that an alias is written through; else the last by name."""
    chosen = [index for index in among if index in _writable(behind)] or sorted(among)
    return chosen[-1] if chosen else None


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings by their full names: they may be written with or without `index`, nested or not."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found |= _flat(value, f"{name}.")
        else:
            found[name if name.startswith("index.") else f"index.{name}"] = value
    return found
