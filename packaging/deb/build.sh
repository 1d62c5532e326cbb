#!/usr/bin/env bash
# Packs a built command for Debian and its relatives, with what dpkg itself brings.
#   packaging/deb/build.sh [BINARY]      target/deb/millpond_VERSION_ARCHITECTURE.deb
# BINARY is target/dist/millpond (`make dist`) unless given. The package has the command, manual
# pages, completions, units for `limit` and `switch` that nothing enables or starts, the book's
# pages, scenarios, and the licences of everything that is linked in. The same commit and binary
# give the same package. DEBFULLNAME and DEBEMAIL name the maintainer, as for other tools of Debian.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
binary=${1:-target/dist/millpond}
fail() {
    echo "deb: $*" >&2
    exit 1
}
for tool in dpkg-deb dpkg-shlibdeps strip gzip python3; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install dpkg-dev binutils python3"
done
[[ -x $binary ]] || fail "there is no program $binary: build it with \`make dist\`"
version=$("$binary" --version | cut -d' ' -f2)
[[ $version =~ ^[0-9]+(\.[0-9]+)+ ]] || fail "$binary --version prints no version"
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

maintainer="${DEBFULLNAME:-The millpond authors} <${DEBEMAIL:-millpond@localhost}>"

work=target/deb
root=$work/millpond
doc=$root/usr/share/doc/millpond
rm -rf "$root" "$work/debian"
umask 022

# put FILE… FOLDER: installs files that all may read.
put() { install -D -m 644 -t "$root/${*: -1}" "${@:1:$#-1}"; }

install -D -m 755 "$binary" "$root/usr/bin/millpond"
# Debian ships programs without symbols and compiler's notes.
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/millpond"

"$binary" man --out "$root/usr/share/man/man1" >/dev/null 2>&1
gzip -9n "$root"/usr/share/man/man1/*.1

complete() {
    mkdir -p "$root/usr/share/$(dirname "$2")"
    "$binary" completions "$1" >"$root/usr/share/$2"
}
complete bash bash-completion/completions/millpond
complete zsh zsh/vendor-completions/_millpond
complete fish fish/vendor_completions.d/millpond.fish

# limit and switch exist in a build for Linux alone.
if "$binary" limit --help >/dev/null 2>&1; then
    for unit in packaging/systemd/*.service; do
        mkdir -p "$root/lib/systemd/system"
        sed 's|/usr/local/bin/|/usr/bin/|g' "$unit" >"$root/lib/systemd/system/${unit##*/}"
    done
fi

put README.md CITATION.cff SECURITY.md usr/share/doc/millpond
find docs scenarios -type f -print0 | while IFS= read -r -d '' file; do
    case $file in
    docs/*) put "$file" "usr/share/doc/millpond/$(dirname "$file")" ;;
    *) put "$file" "usr/share/doc/millpond/examples/$(dirname "$file")" ;;
    esac
done
"$binary" reference >"$doc/docs/reference.md"
# Pages link to ../scenarios.
ln -s examples/scenarios "$doc/scenarios"
python3 packaging/deb/links.py "$doc"
python3 packaging/deb/licences.py "$doc"
{
    printf 'millpond (%s) unstable; urgency=medium\n\n' "$version"
    printf '  * Changes are in CHANGELOG.md beside this file.\n\n'
    printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.gz"
put CHANGELOG.md usr/share/doc/millpond
gzip -9n "$doc/CHANGELOG.md"
install -D -m 644 packaging/deb/overrides "$root/usr/share/lintian/overrides/millpond"

# Versions of shared libraries that the program needs. dpkg-shlibdeps wants to run in a source tree.
mkdir -p "$work/debian"
printf 'Source: millpond\n\nPackage: millpond\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps --ignore-missing-info -O millpond/usr/bin/millpond 2>/dev/null |
    sed -n 's/^shlibs:Depends=//p')

mkdir -p "$root/DEBIAN"
{
    echo "Package: millpond"
    echo "Version: $version"
    echo "Architecture: $architecture"
    echo "Maintainer: $maintainer"
    echo "Installed-Size: $(du -k -s --apparent-size "$root/usr" | cut -f1)"
    [[ -z $depends ]] || echo "Depends: $depends"
    echo "Recommends: iproute2"
    echo "Section: net"
    echo "Priority: optional"
    cat packaging/deb/description
} >"$root/DEBIAN/control"
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$root/DEBIAN/"
(cd "$root" && find usr lib -type f 2>/dev/null | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/md5sums"

package=$work/millpond_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
packaging/deb/check.sh "$package" "$version"
