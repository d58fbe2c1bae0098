"""Guess which columns hold personal data, by their names and by what their values look like.

A guess is for a person to confirm: names are matched word by word, values by patterns that few other
things have. What is told is the kind, and what it was guessed from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_PERSONS = (
    "person",
    "customer",
    "contact",
    "client",
    "user",
    "member",
    "guest",
    "employee",
    "patient",
    "passenger",
    "student",
    "teacher",
    "author",
    "owner",
    "manager",
    "recipient",
    "sender",
    "driver",
    "doctor",
    "beneficiary",
    "applicant",
    "tenant",
    "subscriber",
)
"""Beside `name`, these say whose."""
_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("email", ("email", "e mail", "mail address")),
    ("phone", ("phone", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "msisdn")),
    (
        "name",
        (
            "first name",
            "last name",
            "full name",
            "surname",
            "forename",
            "given name",
            "family name",
            "maiden name",
            "middle name",
            "nickname",
            "fname",
            "lname",
            *(f"{person} name" for person in _PERSONS),
            "cardholder",
            "card holder",
            "account holder",
            "author",
            "passenger",
            "patient",
            "patient id",
        ),
    ),
    ("birth", ("birth", "birthday", "birthdate", "dob", "date of birth")),
    (
        "address",
        (
            "street",
            "address",
            "addr",
            "postcode",
            "zip",
            "zipcode",
            "zip code",
            "postal code",
            "house number",
            "home dest",
        ),
    ),
    ("card", ("card number", "pan", "credit card", "debit card", "cvv", "cvc")),
    ("account", ("iban", "account number", "bank account", "bic", "sort code")),
    (
        "identity",
        (
            "ssn",
            "social security",
            "passport",
            "national id",
            "national insurance",
            "tax id",
            "tax number",
            "nino",
            "driver license",
            "licence number",
            "license number",
            "nhs number",
            "personal number",
        ),
    ),
    ("network", ("ip", "ip address", "mac address", "device id", "user agent", "cookie")),
    (
        "person",
        (
            "gender",
            "sex",
            "ethnicity",
            "race",
            "religion",
            "nationality",
            "marital status",
            "age",
            "username",
            "login",
            "salary",
            "income",
        ),
    ),
    ("secret", ("password", "passwd", "pwd", "token", "api key", "secret", "private key", "access key")),
    ("position", ("latitude", "longitude", "geolocation", "lat", "lng", "lon")),
)
_NO_PERSON = (
    "company",
    "product",
    "file",
    "table",
    "column",
    "event",
    "city",
    "country",
    "brand",
    "host",
    "page",
    "size",
)
"""Words beside which a name is that of something else."""
_ABOUT = ("id", "count", "type", "version", "flag", "length", "limit", "format", "status", "total", "index")
"""Words behind which stands a figure or a key, and not the thing that is named before them."""
_BESIDE = (
    "home",
    "work",
    "private",
    "office",
    "mobile",
    "primary",
    "secondary",
    "billing",
    "shipping",
    "line",
    "number",
    "no",
    "nr",
    "info",
    "data",
    "text",
    "value",
    "to",
    "from",
    "is",
    "has",
    "date",
    "of",
    "the",
    "my",
    "new",
    "old",
    "main",
    "alt",
    "alternative",
    "emergency",
)
"""Words that stand beside others in names that are written as one."""
_VOCABULARY = frozenset(
    word
    for part in (
        *(phrase for _, phrases in _NAMES for phrase in phrases),
        *_PERSONS,
        *_NO_PERSON,
        *_ABOUT,
        *_BESIDE,
    )
    for word in part.split()
)

CARD = "card"
"""Cards have a check digit, too."""
VALUES: tuple[tuple[str, str], ...] = (
    ("email", r"^[^@\s,;]+@[^@\s,;]+\.[A-Za-z]{2,}$"),
    ("account", r"^[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,4})?$"),
    (CARD, r"^(?:4\d{3}|5[1-5]\d{2}|3[47]\d{2}|6011)[ -]?\d{4}[ -]?\d{4}[ -]?\d{3,4}$"),
    ("network", r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$"),
    ("identity", r"^\d{3}-\d{2}-\d{4}$"),
    ("phone", r"^(\+\d{1,3}[ ./()-]?\d[\d ./()-]{5,16}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})$"),
)
"""Kinds that values tell by themselves."""
_MOST = 0.6
"""So large a share of the values must look like it."""


@dataclass(frozen=True)
class Guess:
    """Personal data, probably."""

    kind: str
    why: str


def guess(name: str, shares: dict[str, float]) -> Guess | None:
    """Return what kind of personal data a column holds; None when nothing speaks for it.

    `shares` says of the kinds in VALUES how large a share of the column's values looks like it.
    """
    for kind, _ in VALUES:
        if shares.get(kind, 0) >= _MOST:
            return Guess(kind, f"{shares[kind]:.0%} of the values look like it")
    words = _words(name)
    if not any(word in _NO_PERSON for word in words):
        for kind, phrases in _NAMES:
            for phrase in phrases:
                if _says(words, phrase.split()):
                    return Guess(kind, f'its name says "{phrase}"')
    # `name` alone: of a person, unless the name says of what.
    if words == ["name"]:
        return Guess("name", 'its name says "name"')
    return None


def _says(words: list[str], phrase: list[str]) -> bool:
    """Tell whether a phrase stands among words, and is what they are about."""
    for start in range(len(words) - len(phrase) + 1):
        behind = words[start + len(phrase) :]
        if words[start : start + len(phrase)] == phrase and not (behind and behind[-1] in _ABOUT):
            return True
    return False


def _words(name: str) -> list[str]:
    """Return the words of a name, however it is written: `home_phone`, `HomePhone2`, `homephone`."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    parts = (part.rstrip("0123456789") for part in re.split(r"[\W_]+", apart.lower()))
    return [word for part in parts if part for word in _segments(part) or [part]]


@cache
def _segments(text: str) -> list[str] | None:
    """Return the fewest known words that a text is made of; None where it is not."""
    if not text:
        return []
    found: list[str] | None = None
    for end in range(2, len(text) + 1):
        if text[:end] in _VOCABULARY and (rest := _segments(text[end:])) is not None:
            words = [text[:end], *rest]
            found = words if found is None or len(words) < len(found) else found
    return found
