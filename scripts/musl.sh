#!/usr/bin/env bash
# Builds the simulator as one static file, target/dist/millpond-musl, that runs on any Linux of this
# architecture: world `sim` with everything but `limit`, `switch` and the other worlds. If Rust's
# library for musl is missing, it warns and links glibc statically.
#   scripts/musl.sh [--profile NAME]    NAME is a profile of Cargo.toml, `dist` unless given
# Then it proves that the file needs no library and no loader, and, if target/dist/millpond or
# target/release/millpond is there, that both give the same bytes for scenarios/incast.toml.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fail() {
    echo "musl: $*" >&2
    exit 1
}

profile=dist
case ${1:-} in
'') ;;
--profile) profile=${2:?a profile of Cargo.toml} ;;
*) fail "unknown option $1 (known: --profile)" ;;
esac

target=$(uname -m)-unknown-linux-musl
if ! [[ -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
    echo "musl: Rust's library for $target is missing: linking glibc statically" >&2
    target=${target/musl/gnu}
    export RUSTFLAGS="${RUSTFLAGS:-} -Ctarget-feature=+crt-static"
fi
# C code of a dependency would need musl's compiler; there is none.
cargo build --profile "$profile" --locked -p millpond-cli --no-default-features --target "$target"
mkdir -p target/dist
built=target/dist/millpond-musl
strip -o "$built" "target/$target/$profile/millpond" 2>/dev/null ||
    cp "target/$target/$profile/millpond" "$built"

# A program header of type 3 names a loader, a dynamic tag of type 1 a library.
python3 - "$built" <<'PYTHON' || fail "$built is not static"
import struct, sys

data = open(sys.argv[1], "rb").read()
assert data[:5] == b"\x7fELF\x02", "no ELF file of 64 bits"
table, = struct.unpack_from("<Q", data, 32)
size, count = struct.unpack_from("<HH", data, 54)
for at in range(table, table + size * count, size):
    kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, at)
    assert kind != 3, "it names a loader"
    tags = range(offset, offset + length, 16) if kind == 2 else ()
    assert all(struct.unpack_from("<q", data, tag) != (1,) for tag in tags), "it needs a library"
PYTHON

other=
for candidate in target/dist/millpond target/release/millpond; do
    [[ -x $candidate && -z $other ]] && other=$candidate
done
if [[ -z $other ]]; then
    echo "musl: there is no other build to compare results with" >&2
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$built" run scenarios/incast.toml --quiet --out "$work/musl" >/dev/null
    "$other" run scenarios/incast.toml --quiet --out "$work/other" >/dev/null
    # summary.json has the cost of the run, too; manifest.json and the page have its date.
    for folder in musl other; do
        python3 -c 'import json, sys; s = json.load(sys.stdin); del s["run"]; print(json.dumps(s))' \
            <"$work/$folder/summary.json" >"$work/$folder/numbers"
    done
    for table in "$work"/other/*.parquet "$work/other/numbers"; do
        cmp "$table" "$work/musl/${table##*/}" || fail "$built and $other differ in ${table##*/}"
    done
    echo "musl: scenarios/incast.toml has the bytes of $other"
fi
ls -l "$built"
