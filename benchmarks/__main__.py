"""Run all benchmarks, whatever becomes of each; then name those that failed or missed what is wanted.

python -m benchmarks [FOLDER]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(folder: Path) -> int:
    missed = [
        path.name
        for path in sorted(folder.glob("bench_*.py"))
        if subprocess.run([sys.executable, str(path)], check=False).returncode
    ]
    if missed:
        print(f"failed, or missed what is wanted: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
