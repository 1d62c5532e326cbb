#!/usr/bin/env python3
"""The budget of source: lines of code outside tests, crate by crate, at most those of size.max.

    scripts/size.py            a table: files, lines, and code (neither blank nor a comment)
    scripts/size.py --check    exits with 1 if a crate has more code than size.max allows
    scripts/size.py --lower    writes size.max anew where a crate has less

A change that raises a number of size.max says why in its commit. Tests are folders `tests`, files
`tests.rs` and `*_tests.rs`, and modules behind `#[cfg(test)]`.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts/size.max"
MODULE = re.compile(r"(\s*)(?:pub(?:\([^)]*\))? )?mod \w+\s*([{;])")


def is_test(path):
    """Whether a source of `crates/*/src` is a test as a whole."""
    inner = path.relative_to(ROOT / "crates").parts
    return "tests" in inner[2:-1] or path.name == "tests.rs" or path.name.endswith("_tests.rs")


def without_tests(lines, blank=False):
    """The lines of a file that belong to no module of tests; `blank` keeps their numbers."""
    kept, at = [], 0
    while at < len(lines):
        if lines[at].strip() == "#[cfg(test)]":
            head = at + 1
            while head < len(lines) and lines[head].lstrip().startswith("#["):
                head += 1
            module = MODULE.match(lines[head]) if head < len(lines) else None
            if module:
                begin, at = at, head + 1
                if module[2] == "{":
                    while at < len(lines) and lines[at] != module[1] + "}":
                        at += 1
                    at += 1
                kept += [""] * (at - begin) if blank else []
                continue
        kept.append(lines[at])
        at += 1
    return kept


def sizes():
    """By crate: files, lines, lines of code."""
    found = {}
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if is_test(path):
            continue
        inner = path.relative_to(ROOT / "crates").parts
        lines = without_tests(path.read_text(encoding="utf-8").splitlines())
        is_code = [line.strip() and not line.lstrip().startswith("//") for line in lines]
        files, every, code = found.get(inner[0], (0, 0, 0))
        found[inner[0]] = (files + 1, every + len(lines), code + sum(map(bool, is_code)))
    return found


def limits():
    """By crate: the most lines of code."""
    rows = (line.split() for line in LIMITS.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if row and not row[0].startswith("#")}


def table(found):
    print(f"{'crate':<12}{'files':>7}{'lines':>9}{'code':>9}")
    for crate, row in sorted(found.items(), key=lambda item: -item[1][2]):
        print(f"{crate:<12}{row[0]:>7}{row[1]:>9}{row[2]:>9}")
    files, lines, code = (sum(row[of] for row in found.values()) for of in range(3))
    print(f"{'sum':<12}{files:>7}{lines:>9}{code:>9}")


def check(found):
    most, over = limits(), 0
    for crate, (_, _, code) in found.items():
        if code > most.get(crate, 0):
            over += 1
            print(
                f"{crate}: {code} lines of code, {most.get(crate, 0)} allowed by scripts/size.max: "
                "take some away, or raise the number and say why in the commit"
            )
    total = sum(row[2] for row in found.values())
    print(f"size: {total} lines of code outside tests, {sum(most.values())} allowed")
    return 1 if over else 0


def lower(found):
    old = limits() if LIMITS.exists() else {}
    rows = {crate: min(row[2], old.get(crate, row[2])) for crate, row in found.items()}
    head = "# Lines of code of each crate outside tests, at most: scripts/size.py --check\n"
    LIMITS.write_text(head + "".join(f"{crate} {most}\n" for crate, most in sorted(rows.items())))


if __name__ == "__main__":
    if "--lower" in sys.argv:
        lower(sizes())
    elif "--check" in sys.argv:
        sys.exit(check(sizes()))
    else:
        table(sizes())
