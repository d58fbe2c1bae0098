"""Guess which columns hold personal data, by their names and by what their values look like.

A guess is for a person to confirm: names are matched word by word, values by patterns that few other
things have. What is told is the kind, and what it was guessed from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("email", ("email", "e mail", "mail address")),
    (
        "phone",
        ("phone", "phone number", "phone number", "telephone", "tel", "mobile", "cell", "fax", "msisdn"),
    ),
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
            "person name",
            "customer name",
            "contact name",
            "cardholder",
            "card holder",
            "account holder",
            "author",
            "passenger",
            "patient",
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
    ("card", ("card number", "pan", "credit card", "cvv", "cvc")),
    ("account", ("iban", "account number", "bank account", "bic", "sort code")),
    (
        "identity",
        (
            "ssn",
            "social security",
            "passport",
            "national id",
            "tax id",
            "nino",
            "driver license",
            "licence number",
            "nhs number",
        ),
    ),
    ("network", ("ip", "ip address", "ipaddress", "mac address", "device id", "user agent", "cookie")),
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
            "user name",
            "login",
        ),
    ),
    ("secret", ("password", "passwd", "pwd", "token", "api key", "secret", "private key", "access key")),
    ("position", ("latitude", "longitude", "geolocation")),
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

VALUES: tuple[tuple[str, str], ...] = (
    ("email", r"^[^@\s,;]+@[^@\s,;]+\.[A-Za-z]{2,}$"),
    ("account", r"^[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,4})?$"),
    ("card", r"^(?:4\d{3}|5[1-5]\d{2}|3[47]\d{2}|6011)[ -]?\d{4}[ -]?\d{4}[ -]?\d{3,4}$"),
    ("network", r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$"),
    ("identity", r"^\d{3}-\d{2}-\d{4}$"),
    ("phone", r"^\+\d{1,3}[ ./()-]?\d[\d ./()-]{5,16}$"),
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
    words = f" {_words(name)} "
    compact = words.replace(" ", "")
    for kind, known in _NAMES:
        for word in known:
            is_there = f" {word} " in words or compact == word.replace(" ", "")
            if is_there and not any(f" {other} " in words for other in _NO_PERSON):
                return Guess(kind, f'its name says "{word}"')
    # `name` alone: of a person, unless the name says of what.
    if words == " name ":
        return Guess("name", 'its name says "name"')
    return None


def _words(name: str) -> str:
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return " ".join(re.split(r"[\W_]+", apart.lower())).strip()
