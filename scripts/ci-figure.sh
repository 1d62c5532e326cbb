#!/usr/bin/env bash
# Runs a comparison and fails if a figure has become worse, as the action of this repository does.
#   MILLPOND    the program                                             [millpond]
#   SCENARIO    the scenario
#   FIGURE      the number that must not become worse: queries.qct.p99
#   TOLERANCE   percent by which it may be worse                        [5]
#   SEEDS       how many seeds, or A..B                                 [6]
#   BASELINE    results of an earlier comparison; empty: the first variant is the baseline
#   RESULTS     the results folder                                      [out/millpond-ci]
# Appends a table to $GITHUB_STEP_SUMMARY, and `results` and `regressed` to $GITHUB_OUTPUT, where these are
# set. The exit code is that of `millpond compare`: 5 if the figure is worse than tolerated.
set -euo pipefail

fail() {
    echo "ci-figure: $*" >&2
    exit 2
}

[[ -n ${SCENARIO:-} ]] || fail "SCENARIO is empty: name a scenario"
[[ -n ${FIGURE:-} ]] || fail "FIGURE is empty: name a number, such as queries.qct.p99"
results=${RESULTS:-out/millpond-ci}
options=(--seeds "${SEEDS:-6}" --tolerate "$FIGURE=${TOLERANCE:-5}" --out "$results" --force)
[[ -z ${BASELINE:-} ]] || options+=(--baseline "$BASELINE")

code=0
table=$("${MILLPOND:-millpond}" compare "$SCENARIO" "${options[@]}" --format markdown) || code=$?

# A run that failed before its end has printed no table.
if [[ -n $table ]]; then
    echo "$table"
    if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
        printf '## millpond: %s\n\n%s\n' "$SCENARIO" "$table" >>"$GITHUB_STEP_SUMMARY"
    fi
fi
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    regressed=false
    [[ $code -ne 5 ]] || regressed=true
    printf 'results=%s\nregressed=%s\n' "$results" "$regressed" >>"$GITHUB_OUTPUT"
fi
exit "$code"
