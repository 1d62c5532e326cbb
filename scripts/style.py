#!/usr/bin/env python3
"""Counts what the style of this project excludes, and names each place.

    scripts/style.py                    fails if a place is new
    scripts/style.py --list [CRATE...]  names the places that scripts/style.max still allows
    scripts/style.py --lower            writes scripts/style.max anew where there are fewer

None is allowed of these, in README.md, ARCHITECTURE.md, docs/**/*.md, the comments of
crates/**/*.rs, and the texts of errors and help (string literals) of crates/**/src:

- subject: a sentence that begins with What, Who or That as its subject.
- word: "told" and "tells". Machines report, print, log and notify.
- columns: a line over 100 columns.

Of these, in crates/*/src outside tests, scripts/style.max has for each crate how many are left. The
numbers only fall:

- comment: a line of a comment in which machines tell, say, know or hear.
- name: an identifier of that kind (`told`, `on_word_of`), once for each file.
- it: a binding named `it`.
- tuple: a function with a tuple as a parameter, `fn f(now: Time, (a, b): (A, B))`.

Code in backquotes and blocks, links and quotations do not count.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from size import is_test, without_tests

ROOT = Path(__file__).resolve().parent.parent
LEFT = ROOT / "scripts/style.max"
COLUMNS = 100
KINDS = ("subject", "word", "columns")
FALLING = ("comment", "name", "it", "tuple")

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
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        # A table's row, a link and output cannot be broken.
        is_whole = is_page and (fenced or line.lstrip().startswith("|") or "](" in line or "<" in line)
        if len(line) > COLUMNS and not is_whole:
            yield name, number, "columns", f"{len(line)} columns"


SPEECH = "tell|tells|told|untold|telling|say|says|said|saying|know|knows|knew|knowing|hear|hears|heard|unheard"
SPOKEN = re.compile(rf"\b({SPEECH}|teller|word of)\b", re.IGNORECASE)
IS_SPEECH = re.compile(rf"{SPEECH}|teller|untell")
IT = re.compile(r"\blet\b[^=;{]*\bit\b[^=;{]*=")
FUNCTION = re.compile(r"\bfn (\w+)(?:<[^(]*>)?\(")
TUPLE = re.compile(r"(?:^|,)\s*\([\w\s,&()]*\)\s*:\s*\(")
NOT_CODE = re.compile(r"""//[^\n]*|r#".*?"#|"(?:[^"\\]|\\.)*"|'(?:[^'\\\n]|\\.)'""", re.DOTALL)


def words(name):
    """The words of an identifier, of `snake_case` and of `CamelCase`."""
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")


def parameters(code, at):
    """The text between a parenthesis that opens before `at` and the one that closes it."""
    depth, end = 1, at
    while depth and end < len(code):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return code[at : end - 1]


def spoken(path):
    """Places of the kinds that only fall: line, kind and text."""
    lines = without_tests(path.read_text(encoding="utf-8").splitlines(), blank=True)
    for number, line in enumerate(lines, 1):
        found = re.match(r"\s*//[/!]? ?(.*)", line)
        if found and SPOKEN.search(plain([found.group(1)])):
            yield number, "comment", found.group(1)
    text = "\n".join(lines)
    code = NOT_CODE.sub(lambda found: " " + "\n" * found.group().count("\n"), text)
    names = {}
    for found in re.finditer(r"[A-Za-z_]\w*", code):
        names.setdefault(found.group(), found.start())
    places = [
        (at, "name", name)
        for name, at in names.items()
        if any(IS_SPEECH.fullmatch(word) for word in words(name)) or "word_of" in name
    ]
    places += [(found.start(), "it", found.group()) for found in IT.finditer(code)]
    for found in FUNCTION.finditer(code):
        # A trait's `from` has one parameter, whatever it is made from.
        if found.group(1) != "from" and TUPLE.search(parameters(code, found.end())):
            places.append((found.start(), "tuple", found.group(1)))
    for at, kind, what in sorted(places):
        yield code.count("\n", 0, at) + 1, kind, what


def left():
    """By crate and kind: how many places scripts/style.max allows."""
    rows = (line.split() for line in LEFT.read_text().splitlines() if not line.startswith("#"))
    return {(row[0], kind): int(n) for row in rows for kind, n in zip(FALLING, row[1:])}


def lower(counts):
    old = left() if LEFT.exists() else counts
    crates = sorted({crate for crate, _ in counts})
    rows = [
        [crate, *(str(min(counts[crate, kind], old.get((crate, kind), 0))) for kind in FALLING)]
        for crate in crates
    ]
    head = f"# Places of each crate at most, `scripts/style.py --list`: {' '.join(FALLING)}\n"
    LEFT.write_text(head + "".join(" ".join(row) + "\n" for row in rows))


def falling(arguments):
    """Compares the kinds that only fall with scripts/style.max. Whether none has grown."""
    counts, places = Counter(), {}
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if not is_test(path):
            crate, name = path.relative_to(ROOT / "crates").parts[0], path.relative_to(ROOT)
            for line, kind, text in spoken(path):
                counts[crate, kind] += 1
                places.setdefault((crate, kind), []).append(f"{name}:{line}: {kind}: {text}")
    if "--lower" in arguments:
        lower(counts)
    allowed = left()
    grown = [of for of, n in sorted(counts.items()) if n > allowed.get(of, 0)]
    chosen = grown
    if "--list" in arguments:
        chosen = [of for of in sorted(places) if of[0] in arguments[1:] or not arguments[1:]]
    for of in chosen:
        print("\n".join(places[of]))
    for crate, kind in grown:
        most = allowed.get((crate, kind), 0)
        print(f"{crate}: {counts[crate, kind]} of kind {kind}, {most} allowed by scripts/style.max")
    sums = {kind: sum(n for of, n in counts.items() if of[1] == kind) for kind in FALLING}
    print("style, left: " + ", ".join(f"{n} {kind}" for kind, n in sums.items()))
    return not grown


def main():
    is_well = falling(sys.argv[1:])
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
    return 0 if is_well and not found else 1


if __name__ == "__main__":
    sys.exit(main())
