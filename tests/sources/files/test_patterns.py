"""Patterns match in stores as they match on a disk."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from esker.sources.files.patterns import fixed_part, is_hidden, matches, reaches_below

FILES = ["a.csv", "b.json", "x/a.csv", "x/y/a.csv", "x/y/z/b.csv", "x/yy/a.csv", "w/[1].csv", "w/1.csv"]


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.csv", "*", "x/*.csv", "x/*/a.csv", "x/**/*.csv", "**/*.csv", "**/a.csv", "x/y*/?.csv"),
        *("**/y/**/*.csv", "x/y/a.csv", "[ab].csv", "w/[[]1].csv", "x/**", "**/**/*.csv", "nothing/*"),
    ],
)
def test_as_on_a_disk(tmp_path: Path, pattern: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    on_disk = glob.glob(pattern, root_dir=tmp_path, recursive=True)  # noqa: PTH207
    expected = sorted({name for name in on_disk if (tmp_path / name).is_file()})
    assert sorted(name for name in FILES if matches(name, pattern)) == expected


def test_where_to_look() -> None:
    assert fixed_part("bucket/a/b*/c.csv") == "bucket/a"
    assert fixed_part("bucket/*.csv") == "bucket"
    assert fixed_part("/data/x.csv") == "/data"
    assert fixed_part("*.csv") == ""
    assert [reaches_below(text) for text in ("b/*.csv", "b/*/x.csv", "b/**", "b/x.csv")] == [
        False,
        True,
        True,
        False,
    ]
    assert is_hidden("a/_b/c")
    assert is_hidden(".a")
    assert not is_hidden("../a_/b.")
