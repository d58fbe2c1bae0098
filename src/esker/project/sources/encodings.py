"""Character sets of text files that Python and Java both know, whatever each of them calls them."""

from __future__ import annotations

import codecs

_JAVA_NAMES = {
    "ascii": "US-ASCII",
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "utf-32": "UTF-32",
    "utf-32-be": "UTF-32BE",
    "utf-32-le": "UTF-32LE",
    **{f"iso8859-{part}": f"ISO-8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15)},
    **{f"cp{page}": f"windows-{page}" for page in range(1250, 1259)},
    **{f"cp{page}": f"IBM{page}" for page in (437, 850, 852, 855, 866)},
    "cp932": "windows-31j",
    "koi8-r": "KOI8-R",
    "koi8-u": "KOI8-U",
    "shift_jis": "Shift_JIS",
    "euc_jp": "EUC-JP",
    "euc_kr": "EUC-KR",
    "big5": "Big5",
    "gb2312": "GB2312",
    "gbk": "GBK",
    "gb18030": "GB18030",
}


def java_encoding(name: str) -> str:
    """Return what Java calls a character set. Raises ValueError for one that cannot be read."""
    try:
        found = _JAVA_NAMES.get(codecs.lookup(name).name)
    except LookupError:
        found = None
    if found is None:
        raise ValueError(
            f'unknown encoding "{name}"; write UTF-8, ISO-8859-1, windows-1252 or the like, '
            "or convert the files to UTF-8"
        )
    return found
