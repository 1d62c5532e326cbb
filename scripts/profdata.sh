#!/usr/bin/env bash
# Prints the program that merges counts into a profile: llvm-profdata of the LLVM that rustc has.
# Another major version reads other files. Exits with 1, and prints nothing, if there is none.
#   scripts/profdata.sh --major    prints that LLVM's major version
set -euo pipefail

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
versions=$(rustc -vV)
host=$(sed -n 's/^host: //p' <<<"$versions")
major=$(sed -n 's/^LLVM version: \([0-9]*\).*/\1/p' <<<"$versions")
if [[ ${1:-} == --major ]]; then
    echo "$major"
    exit
fi
for tool in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
    "llvm-profdata-$major" "/usr/lib/llvm-$major/bin/llvm-profdata" llvm-profdata; do
    tool=$(command -v "$tool") || continue
    if [[ $("$tool" --version 2>/dev/null) =~ LLVM\ version\ $major\. ]]; then
        echo "$tool"
        exit
    fi
done
exit 1
