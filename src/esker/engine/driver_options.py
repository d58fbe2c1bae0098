"""Java's options for a local driver that does little work: less compiling, fewer threads.

By default Java compiles what is used often a second time, for speed, and frees memory in threads of its own.
Both pay for themselves over minutes; in a process that ends after seconds they take the processor away from
the work itself.
"""

from __future__ import annotations

import re

from esker.engine.class_archive import others_options

BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_COMPILER = re.compile(r"-XX:(?:TieredStopAtLevel|[+-]TieredCompilation|\w*CompileThreshold)|-Xint|-Xcomp")


def brief_options(own: str) -> str:
    """Return the options, without those about which a user's own, or the environment's, say something.

    Java does not start with two kinds of collectors.
    """
    given = f"{own} {others_options()}"
    chosen = [
        option for option, said in zip(BRIEF, (_COMPILER, _COLLECTOR), strict=True) if not said.search(given)
    ]
    return " ".join(chosen)
