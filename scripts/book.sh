#!/usr/bin/env bash
# Builds the book into out/book, and checks that no link in it is dead. Its pages are those of docs/,
# the reference as the program prints it, and a list of the mechanisms in the summary. mdBook turns a
# link to a file outside of docs/ into one to a page that it does not make; here such a link leads to
# the file in the repository again.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source=target/book
rm -rf "$source"
mkdir -p target
cp -r docs "$source"
# MILLPOND=FILE runs a program that is built already.
if [[ -n ${MILLPOND:-} ]]; then
    "$MILLPOND" reference >"$source/reference.md"
else
    cargo run --quiet --locked -p millpond-cli --no-default-features -- reference >"$source/reference.md"
fi
while IFS= read -r line; do
    if [[ $line == "<!-- "*" docs/mechanisms "* ]]; then
        for page in docs/mechanisms/*.md; do
            name=$(basename "$page" .md)
            echo "- [$name](mechanisms/$name.md)"
        done
    else
        echo "$line"
    fi
done <docs/SUMMARY.md >"$source/SUMMARY.md"
target/tools/bin/mdbook build
out=out/book

# depth N PATTERN: pages N folders below the book's root leave it by N + 1 times "../".
depth() {
    local up=$1
    shift
    # Two steps: out/book lies one folder deeper than docs/; an .html that was .md is that again.
    sed -i -E "s#href=\"${up}([A-Za-z][^\"]*)\"#href=\"../${up}\1\"#g; :again
        s#href=\"(\.\./${up}[^\":]*)\.html(\#[^\"]*)?\"#href=\"\1.md\2\"#; t again" "$@"
}
depth '\.\./' "$out"/*.html
for folder in "$out"/*/; do
    pages=("$folder"*.html)
    [[ -e ${pages[0]} ]] && depth '\.\./\.\./' "${pages[@]}"
done

# mdBook makes index.html of a folder's README.md, and links to README.html.
{ grep -lE 'href="[^":]*README\.html' -r "$out" --include='*.html' || true; } |
    xargs -r sed -i -E 's@(href="[^":]*)README\.html@\1index.html@g'

dead=0
while IFS=: read -r page link; do
    file=${link#href=\"}
    file=${file%\"}
    file=${file%%#*}
    case $file in
    "" | *://* | mailto:* | data:*) continue ;;
    esac
    if [[ ! -e ${page%/*}/$file ]]; then
        echo "$page: dead link $file" >&2
        dead=1
    fi
done < <(grep -oE 'href="[^"]+"' -r "$out" --include='*.html' | sort -u)
exit "$dead"
