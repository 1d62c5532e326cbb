#!/usr/bin/env python3
"""Keeps the links of a package's pages alive: links.py FOLDER makes each relative link whose file
the package lacks plain text, with the path that the file has in the repository."""

import posixpath
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def text(page: Path, match: re.Match) -> str:
    picture, words, link = match.groups()
    path = link.partition("#")[0]
    if not path or ":" in path or (page.parent / path).exists():
        return match[0]
    place = posixpath.normpath(posixpath.join(page.parent.relative_to(root).as_posix(), path))
    return words if picture or place in words else f"{words} ({place} of the repository)"


for page in sorted(root.rglob("*.md")):
    old = page.read_text(encoding="utf-8")
    new = LINK.sub(lambda match: text(page, match), old)
    if new != old:
        page.write_text(new, encoding="utf-8")
