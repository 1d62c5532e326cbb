#!/usr/bin/env bash
# Builds the kernel of the world `virtual`: User Mode Linux with time travel, from the distribution's source package, and the library that seeds it.
#   scripts/kernel.sh           build it if there is none of this version and configuration, and say where it is
#   scripts/kernel.sh --where   only say where it is
# It goes to $MILLPOND_CACHE (~/.cache/millpond by default), kernel/VERSION-CONFIGURATION, and kernel/current names it. The source is not changed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=${MILLPOND_KERNEL_SOURCE:-linux-source-6.12}
config=crates/virtual/kernel/config
seeded=crates/virtual/kernel/seeded.c
cache=${MILLPOND_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/millpond}/kernel
archive=/usr/src/$package.tar.xz

say() { echo "kernel: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

if [[ ${1:-} == --where ]]; then
    [[ -e $cache/current/linux ]] || fail "none is built: make setup-virtual"
    readlink -f "$cache/current"
    exit
fi
[[ $(uname -m) == x86_64 ]] || fail "User Mode Linux needs x86_64, and this machine is $(uname -m)"
[[ -f $archive ]] || fail "$archive is missing: make setup-virtual installs $package"

version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null || sha256sum "$archive" | cut -c1-12)
version=${version%%-*}
sum=$(cat "$config" "$seeded" "scripts/kernel.sh" | sha256sum | cut -c1-8)
home=$cache/$version-$sum
if [[ ! -x $home/linux || ! -f $home/seeded.so ]]; then
    began=$SECONDS
    mkdir -p "$home"
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    log=$home/build.log
    say "building Linux $version for User Mode, some minutes (its output: $log)"
    {
        tar -C "$work" -xf "$archive"
        source=$work/$package
        # This architecture fixes HZ to 100 and asks nobody. The first default wins, so the
        # configuration begins with another: a timer of 5 ms would wait for 10.
        sed '/^mainmenu/a config HZ\n\tint\n\tdefault 1000\n' "$source/Kconfig" >"$work/Kconfig"
        export KBUILD_KCONFIG="$work/Kconfig"
        # Nothing of the place or time of the build is part of the kernel.
        export KBUILD_BUILD_TIMESTAMP="Thu Jan 1 00:00:00 UTC 1970" KBUILD_BUILD_USER=millpond KBUILD_BUILD_HOST=millpond
        make=(make -s -C "$source" "O=$work/out" ARCH=um "KCFLAGS=-ffile-prefix-map=$work=.")
        mkdir -p "$work/out"
        "${make[@]}" tinyconfig
        cp "$config" "$work/fragment"
        (cd "$work/out" && "$source/scripts/kconfig/merge_config.sh" -m .config "$work/fragment")
        "${make[@]}" olddefconfig
    } >>"$log" 2>&1 || fail "its configuration failed: see $log"
    while read -r line; do
        grep -qx "$line" "$work/out/.config" || say "the source refuses $line"
    done < <(grep -E '^CONFIG_' "$config")
    nice "${make[@]}" -j"$(nproc)" linux >>"$log" 2>&1 || fail "the build failed: see $log"
    strip -o "$home/linux.new" "$work/out/linux"
    cp "$work/out/.config" "$home/config"
    cc -O2 -Wall -Wextra -shared -fPIC -o "$home/seeded.so" "$seeded"
    mv "$home/linux.new" "$home/linux"
    say "built in $((SECONDS - began)) s"
fi
ln -sfn "$(basename "$home")" "$cache/current"
say "$home/linux"
