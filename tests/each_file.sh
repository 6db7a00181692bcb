#!/usr/bin/env bash
# Runs a command on each file in a process of its own, AT_ONCE of them at a time; what each says is shown when it has ended.
# Usage: AT_ONCE=2 each_file.sh COMMAND ARGUMENTS... -- FILES...; fails when one fails. A file without tests is none (pytest's 5).
set -u
command=()
while [ "$1" != -- ]; do command+=("$1"); shift; done
shift

one() {
    local file=${!#} status said
    said=$(mktemp)
    # into a file: a pipe would be waited for as long as any process that was left behind holds it
    "$@" >"$said" 2>&1
    status=$?
    [ "$status" -eq 5 ] || { printf '%s\n' "$file"; cat "$said"; }
    rm -f "$said"
    [ "$status" -eq 5 ] && exit 0
    exit "$status"
}
export -f one
printf '%s\0' "$@" | xargs -0 -P "${AT_ONCE:-1}" -I '{}' bash -c 'one "$@"' one "${command[@]}" '{}'
