#!/usr/bin/env bash
# Examines a built package: check.sh PACKAGE VERSION. Unpacks it, installs nothing.
set -euo pipefail

package=$1 version=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() {
    echo "deb: $package: $*" >&2
    exit 1
}
dpkg-deb -x "$package" "$root"
dpkg-deb -e "$package" "$root/DEBIAN"

dpkg-deb -c "$package" | awk '$2 != "root/root" { exit 1 }' || fail "a file is not root's"
[[ $("$root/usr/bin/millpond" --version) == "millpond $version "* ]] || fail "wrong --version"
# The packed program runs a packed scenario.
"$root/usr/bin/millpond" run "$root/usr/share/doc/millpond/examples/scenarios/incast.toml" \
    --quiet --out "$root/out" >/dev/null || fail "scenarios/incast.toml does not run"
(cd "$root" && md5sum --quiet -c DEBIAN/md5sums) || fail "md5sums are wrong"

zcat "$root/usr/share/man/man1/millpond.1.gz" | grep -q '^\.TH millpond 1' || fail "no manual page"
"$root/usr/bin/millpond" completions bash |
    cmp -s - "$root/usr/share/bash-completion/completions/millpond" || fail "other completions"
bash -n "$root/usr/share/bash-completion/completions/millpond" || fail "bash cannot read completions"
for name in copyright third-party-licences.gz changelog.gz docs/limit.md; do
    [[ -s $root/usr/share/doc/millpond/$name ]] || fail "doc/$name is missing"
done
# No page has a link to a file that the package lacks.
find "$root/usr/share/doc/millpond" -name '*.md' -print0 |
    xargs -0 grep -oE '\]\([^)# ]+' | while IFS=: read -r page link; do
    [[ $link == *:* || -e ${page%/*}/${link#*(} ]] || echo "${page#"$root"}: dead link ${link#*(}"
done >"$root/dead"
[[ ! -s $root/dead ]] || fail "$(cat "$root/dead")"
# Every crate of the list has a licence.
sed -n '/^Crates that are linked in/,$p' "$root/usr/share/doc/millpond/copyright" |
    awk 'NF == 2 && /:/ { bad = 1 } / [0-9.]+.*: ./ { count++ } END { exit bad || count < 50 }' ||
    fail "copyright lacks licences of crates"

for unit in "$root"/lib/systemd/system/*.service; do
    [[ -e $unit ]] || continue
    ! grep -q /usr/local "$unit" || fail "${unit##*/} starts a program outside of the package"
    if command -v systemd-analyze >/dev/null; then
        systemd-analyze verify --root="$root" --recursive-errors=no "${unit##*/}" 2>"$root/verify" || {
            cat "$root/verify" >&2
            fail "systemd-analyze verify ${unit##*/}"
        }
        ! grep "${unit##*/}" "$root/verify" >&2 || fail "systemd-analyze verify ${unit##*/}"
    fi
done

# An installation must not start or enable anything: a systemctl that records its calls.
mkdir "$root/tools"
printf '#!/bin/sh\necho "$*" >>"%s/calls"\n' "$root" >"$root/tools/systemctl"
chmod 755 "$root/tools/systemctl"
for script in "postinst configure" "postinst configure 0.0.1" "prerm upgrade 9" "prerm remove" \
    "postrm remove" "postrm purge"; do
    read -r name arguments <<<"$script"
    # The scripts ask for systemd's folder, which a machine that builds may lack.
    sed "s|/run/systemd/system|$root/tools|" "$root/DEBIAN/$name" >"$root/tools/$name"
    # shellcheck disable=SC2086  # several arguments
    PATH="$root/tools:$PATH" sh "$root/tools/$name" $arguments || fail "$script fails"
done
! grep -E '^(start|enable|restart|reload-or-restart) ' "$root/calls" || fail "a script starts a service"
[[ $(grep -c '^try-restart ' "$root/calls") == 1 ]] || fail "only an upgrade restarts what runs"

if command -v lintian >/dev/null; then
    # The maintainer's address is that of the one who builds.
    tags=(--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog)
    [[ -n ${DEBEMAIL:-} ]] && tags=()
    lintian --allow-root --fail-on error,warning "${tags[@]}" "$package" || fail "lintian objects"
else
    echo "deb: lintian is not installed: not run" >&2
fi
ls -l "$package"
