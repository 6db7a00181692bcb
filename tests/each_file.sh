#!/usr/bin/env bash
# Runs a command on each file in a separate process, AT_ONCE of them in parallel: prints a line for each that passes, and
# at the end the output of those that failed. Usage: AT_ONCE=2 each_file.sh COMMAND ARGUMENTS... -- FILES...
# Fails when one fails. A file without tests (pytest's exit code 5) does not count as failed.
set -u
command=()
while [ "$1" != -- ]; do command+=("$1"); shift; done
shift

said=$(mktemp -d)
trap 'cat "$said"/*.failed 2>/dev/null; rm -rf "$said"' EXIT
export said

one() {
    local file=${!#} status out
    out=$said/$(basename "$file")
    # into a file: reading a pipe would wait for any process left behind that holds it open
    "$@" >"$out" 2>&1
    status=$?
    case $status in
        5) ;;
        0) printf '%s %s\n' "$file" "$(tail -n 1 "$out")" ;;
        *) printf '%s failed\n' "$file"; mv "$out" "$out.failed"; exit 1 ;;
    esac
}
export -f one
printf '%s\0' "$@" | xargs -0 -P "${AT_ONCE:-1}" -I '{}' bash -c 'one "$@"' one "${command[@]}" '{}'
