#!/usr/bin/env python3
"""Writes `copyright` and `third-party-licences.gz` for the command: licences.py FOLDER

`copyright` has name, version and licence of each crate that the command is built from, of
`cargo metadata`; `third-party-licences.gz` the texts of their licences, each once.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

COMMAND = "millpond-cli"
NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*")


def linked() -> list[dict]:
    """The crates of the command, without those of tests and of build scripts, by name."""
    run = ["cargo", "metadata", "--locked", "--format-version", "1"]
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    triple = next(line[6:] for line in host.splitlines() if line.startswith("host: "))
    run += ["--filter-platform", triple]
    metadata = json.loads(subprocess.run(run, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    open_ = [key for key, package in packages.items() if package["name"] == COMMAND]
    found = set(open_)
    while open_:
        for dependency in nodes[open_.pop()]["deps"]:
            kinds = (kind["kind"] for kind in dependency["dep_kinds"])
            if None in kinds and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                open_.append(dependency["pkg"])
    # Crates of this workspace have no source.
    return sorted(
        (packages[key] for key in found if packages[key]["source"] is not None),
        key=lambda package: (package["name"], package["version"]),
    )


def texts(package: dict) -> list[str]:
    """The licence files of a crate, and of what it carries in a folder."""
    folder = Path(package["manifest_path"]).parent
    files = {path for name in NAMES for depth in ("", "*/") for path in folder.glob(depth + name)}
    return [path.read_text(errors="replace").strip() for path in sorted(files) if path.is_file()]


def copyright_file(crates: list[dict]) -> str:
    year = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))).tm_year
    lines = ["millpond", "========", "", f"Copyright {year} The millpond authors", ""]
    lines += [Path("LICENSE").read_text().strip(), ""]
    lines += ["The MIT license", "---------------", ""]
    lines += [Path("LICENSE-MIT").read_text().strip(), ""]
    lines += ["The Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0", ""]
    lines += ["Crates that are linked in", "-------------------------", ""]
    lines += ["Their licence texts are in third-party-licences.gz beside this file.", ""]
    for crate in crates:
        licence = crate["license"] or f"see {crate['license_file']}"
        lines.append(f"{crate['name']} {crate['version']}: {licence}")
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    crates = linked()
    by_text: dict[str, list[str]] = {}
    for crate in crates:
        for text in texts(crate):
            by_text.setdefault(text, []).append(f"{crate['name']} {crate['version']}")
    parts = [f"{', '.join(dict.fromkeys(names))}\n\n{text}\n" for text, names in by_text.items()]
    (folder / "copyright").write_text(copyright_file(crates))
    bytes_ = ("\n" + "=" * 80 + "\n\n").join(parts).encode()
    # Without the time, the same crates give the same file.
    (folder / "third-party-licences.gz").write_bytes(gzip.compress(bytes_, 9, mtime=0))


main()
