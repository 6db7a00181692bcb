#!/usr/bin/env bash
# Runs a command on each file in a process of its own, AT_ONCE of them at a time: a line for each that passes, and at the
# end all that those said which did not. Usage: AT_ONCE=2 each_file.sh COMMAND ARGUMENTS... -- FILES...
# Fails when one fails. A file without tests is none (pytest's 5).
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
    # into a file: a pipe would be waited for as long as any process that was left behind holds it
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
