"""Fetch jars for a Spark elsewhere: `python -m esker.cli.fetch --spark 3.5 --to jars iceberg aws`.

The scripts of `esker export` call this. Checksums are those of the lock file.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Copy jars into a folder and print where they are."""
    from esker.engine.jars import provide_jars
    from esker.errors import EskerError

    parser = argparse.ArgumentParser(prog="python -m esker.cli.fetch")
    parser.add_argument("--spark", required=True, help="Minor version of Spark, such as 3.5.")
    parser.add_argument("--to", required=True, type=Path, help="The folder.")
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    try:
        found = provide_jars(given.names, {}, given.to / "fetch.log", given.spark)
    except EskerError as error:
        sys.exit(f"{error.message}: {error.reason}")
    for jar in found:
        if not (given.to / jar.name).exists():
            shutil.copyfile(jar, given.to / jar.name)
    print(",".join(str((given.to / jar.name).resolve()) for jar in found))


if __name__ == "__main__":
    main()
