#!/usr/bin/env python3
"""Counts what the style of this project excludes, and names each place.

- A sentence that begins with What, Who or That as its subject.
- "told" and "tells": machines report, print, log and notify.
- A line over 100 columns.

It reads README.md, ARCHITECTURE.md, docs/**/*.md, and the comments and docstrings of
crates/**/*.rs, and the texts of errors and help (string literals) of crates/**/src. Code in
backquotes and blocks, links and quotations do not count. There are no exceptions: it prints each
place, and fails if there is one.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100
KINDS = ("subject", "word", "columns")

BEGIN = r"(?:^|(?<=[.!?:] )|(?<=[.!?] [(*_]))"
SUBJECT = re.compile(BEGIN + r"(?:[*_(]*)(What|Who|That)\b (?!(?:else|for)\b)")
WORDS = re.compile(r"\b(told|tells)\b", re.IGNORECASE)


def markdown(path):
    """Paragraphs of a page with their first line, without code."""
    text, block, start, fenced = path.read_text(), [], 0, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            line = ""
        if fenced or not line.strip():
            if block:
                yield start, block
            block = []
            continue
        if not block or re.match(r"\s*([-*|#>]|\d+\.)", line):
            if block:
                yield start, block
            block, start = [], number
        block.append(line)
    if block:
        yield start, block


def comments(path):
    """Runs of comment lines of a source with their first line, without code."""
    block, start, fenced = [], 0, False
    for number, line in enumerate(path.read_text().split("\n"), 1):
        found = re.match(r"\s*//[/!]? ?(.*)", line)
        text = found.group(1) if found else ""
        if found and text.lstrip().startswith("```"):
            fenced, text = not fenced, ""
        fenced = fenced and bool(found)
        if not found or fenced or not text.strip():
            if block:
                yield start, block
            block = []
            continue
        if not block or re.match(r"\s*([-*|#>]|\d+\.)\s", text):
            if block:
                yield start, block
            block, start = [], number
        block.append(text)
    if block:
        yield start, block


LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def literals(path):
    """Texts of a source that have several words, with their line; tests have none."""
    text = path.read_text()
    text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]
    text = re.sub(r"^[ \t]*//.*$", "", text, flags=re.MULTILINE)
    text = text.replace("'\"'", "   ")
    for found in LITERAL.finditer(text):
        words = re.sub(r"\\\n\s*", "", found.group(1))
        if words.count(" ") >= 2:
            yield text.count("\n", 0, found.start()) + 1, [words]


def plain(lines):
    text = " ".join(line.strip() for line in lines)
    text = re.sub(r"^([-*>#]|\d+\.)\s+", "", text)
    text = re.sub(r"`[^`]*`", "`x`", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"[\"“][^\"”]*[\"”]", "\"x\"", text)


def findings(path, blocks):
    name = str(path.relative_to(ROOT))
    for start, lines in blocks:
        text = plain(lines)
        for what, found in [("subject", SUBJECT), ("word", WORDS)]:
            for match in found.finditer(text):
                around = text[max(0, match.start() - 20) : match.end() + 50].strip()
                yield name, start, what, around


def wide(path):
    name, fenced = str(path.relative_to(ROOT)), False
    is_page = path.suffix == ".md"
    if name == "docs/reference.md":  # Generated: a paragraph a line.
        return
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        # A table's row, a link and output cannot be broken.
        is_whole = is_page and (fenced or line.lstrip().startswith("|") or "](" in line or "<" in line)
        if len(line) > COLUMNS and not is_whole:
            yield name, number, "columns", f"{len(line)} columns"


def main():
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
    sources = sorted((ROOT / "crates").rglob("*.rs"))
    found = []
    for path in pages:
        found += [*findings(path, markdown(path)), *wide(path)]
    for path in sources:
        found += [*findings(path, comments(path)), *wide(path)]
        if "src" in path.relative_to(ROOT).parts and path.name != "tests.rs":
            found += findings(path, literals(path))
    for name, line, kind, text in found:
        print(f"{name}:{line}: {kind}: {text}")
    kinds = [kind for _, _, kind, _ in found]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS)
    print(f"style: {counts} in {len(pages)} pages and {len(sources)} sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
