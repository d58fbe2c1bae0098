"""`make demo`: a whole story on the embedded catalog, told as it goes.

The project stays in `.demo/shop`. The first time it is made, loaded, and then met by a late file; every
further time there is nothing new, and nothing is loaded twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SHOP = Path(".demo/shop")
LATE_FILE = SHOP / "landing/orders/2026-09-late.csv"
LATE_ROWS = """order_id,customer_id,amount,country,placed_on,currency
A-0998,17,12.00,SE,2026-09-30,SEK
A-0999,40,30.00,DK,2026-09-30,DKK
"""


def tell(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def esker(*arguments: str, folder: Path | None = SHOP) -> None:
    """Run an esker command as a user would, and end the story if it fails."""
    print("$ esker " + " ".join(arguments), flush=True)
    program = Path(sys.executable).with_name("esker")
    where = [] if folder is None else ["--project", str(folder)]
    status = subprocess.run([str(program), *arguments, *where], check=False).returncode
    if status:
        sys.exit(status)


def read_without_spark() -> None:
    """Read the same tables with PyIceberg and DuckDB: no Spark, no Java."""
    import duckdb
    from pyiceberg.catalog.sql import SqlCatalog

    home = SHOP.absolute() / ".esker"
    catalog = SqlCatalog(
        "lake", uri=f"sqlite:///{home / 'catalog.db'}", warehouse=f"file://{home / 'warehouse'}"
    )
    orders = catalog.load_table("shop.orders").scan().to_arrow()
    print(f"PyIceberg reads {orders.num_rows} orders; DuckDB sums them up by country:")
    print(
        duckdb.sql(
            "select country, count(*) as orders, sum(amount) as amount from orders group by all order by 1"
        )
    )


def main() -> None:
    from esker.engine.jars import missing_jars

    os.chdir(Path(__file__).parents[1])
    if not (SHOP / "esker.yml").exists():
        tell("1. A new project: an esker.yml, and files in its landing folder")
        esker("init", str(SHOP), folder=None)
    else:
        tell("1. The project of the last time is still there: .demo/shop")

    tell("2. Is the project file right? What would a run do?")
    esker("check")
    if jars := missing_jars(["iceberg", "sqlite"]):
        print(f"(Spark's first start fetches {len(jars)} jars, about 60 MB, and keeps them)", flush=True)
    esker("plan")

    tell("3. Run: check every row, write files, publish data and position in one commit")
    esker("run")

    if not LATE_FILE.exists():
        tell("4. A file lands late, with an old date and a column nobody has seen before")
        LATE_FILE.write_text(LATE_ROWS)
        os.utime(LATE_FILE, (1_700_000_000, 1_700_000_000))
    else:
        tell("4. The late file of the last time has been loaded already")
    esker("run", "orders")

    tell("5. The same again: nothing is loaded twice")
    esker("run")

    tell("6. Other engines read the same tables")
    read_without_spark()

    tell("7. What has been loaded")
    esker("show", "shop.orders", "--where", "placed_on >= date '2026-11-01'")
    esker("status")
    print("\nThe project is in .demo/shop: change a file, run again, break something.")


if __name__ == "__main__":
    main()
