#!/usr/bin/env bash
# Runs a command on each file in a process of its own, AT_ONCE of them at a time; what each says is shown when it has ended.
# Usage: AT_ONCE=2 each_file.sh COMMAND ARGUMENTS... -- FILES...; fails when one fails. A file without tests is none (pytest's 5).
set -u
command=()
while [ "$1" != -- ]; do command+=("$1"); shift; done
shift

one() {
    local file=${!#} output status
    output=$("$@" 2>&1)
    status=$?
    [ "$status" -eq 5 ] && exit 0
    printf '%s\n%s\n' "$file" "$output"
    exit "$status"
}
export -f one
printf '%s\0' "$@" | xargs -0 -P "${AT_ONCE:-1}" -I '{}' bash -c 'one "$@"' one "${command[@]}" '{}'
