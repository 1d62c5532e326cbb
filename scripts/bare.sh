#!/usr/bin/env bash
# Runs targets of make on a machine that has nothing: each argument, with its own arguments, in a
# new root of Debian (minbase, make and git), without Rust, in a clone of the last commit. Prints a
# table: the target, its result, its time, and the packages that it installed. Root; mmdebstrap.
#   scripts/bare.sh [ARGUMENT…]           without: targets that need neither root's powers nor hours
#   scripts/bare.sh "dist deb" "dist-musl ARGS='--profile release'"
# RUST=DIRECTORY lends a toolchain (`rustc --print sysroot`), for a network without Rust's servers;
# SUITE names another Debian; KEEP=DIRECTORY keeps each root and its log there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -eq 0 ]]; then
    set -- demo "dist deb" dist-musl book test-core test-python lint
fi
command -v mmdebstrap >/dev/null || {
    echo "bare: mmdebstrap is missing: apt-get install mmdebstrap" >&2
    exit 2
}
[[ $(id -u) -eq 0 ]] || {
    echo "bare: run as root" >&2
    exit 2
}
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work"
[[ -n ${KEEP:-} ]] || trap 'rm -rf "$work"' EXIT

# The machine's own certificates: a network may have its own authority.
base=$work/base.tar
[[ -f $base ]] || mmdebstrap --quiet --variant=minbase --include=make,git,ca-certificates \
    --customize-hook='copy-in /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs' \
    "${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}" "$base"

# inside ROOT COMMAND: in namespaces of its own, so that no mount and no process stays.
inside() {
    local root=$1 command=$2 path=/usr/sbin:/usr/bin:/sbin:/bin
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        if [ -n "$3" ]; then mkdir -p "$1/opt/rust"; mount --rbind "$3" "$1/opt/rust"; fi
        exec chroot "$1" env -i HOME=/home LANG=C.UTF-8 PATH="$4" \
            CARGO_BUILD_JOBS="${CARGO_BUILD_JOBS:-$(nproc)}" \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            bash -c "cd /home/millpond && $2"
    ' - "$root" "$command" "${RUST:-}" "${RUST:+/opt/rust/bin:}$path"
}

failed=0
printf '| make | result | seconds | packages installed | warnings |\n|---|---|---|---|---|\n'
for target in "$@"; do
    name=${target//[^a-z-]/-}
    root=$work/$name log=$work/$name.log
    mkdir "$root"
    tar -xf "$base" -C "$root"
    git clone --quiet --no-local . "$root/home/millpond"
    inside "$root" 'dpkg-query -W -f "\${Package}\n" | sort' >"$work/before"
    start=$SECONDS result=passes
    inside "$root" "make $target" >"$log" 2>&1 </dev/null || result=fails failed=1
    inside "$root" 'apt-mark showmanual | sort' >"$work/after"
    printf '| `%s` | %s | %s | %s | %s |\n' "$target" "$result" $((SECONDS - start)) \
        "$(comm -13 "$work/before" "$work/after" | paste -sd ' ')" \
        "$(grep -E '^(setup: without|dist: building|musl: |skipped)' "$log" | paste -sd ';' || true)"
    [[ $result == passes ]] || tail -n 20 "$log" | sed 's/^/    /' >&2
    [[ -n ${KEEP:-} ]] || rm -rf "$root"
done
exit $failed
