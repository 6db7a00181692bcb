#!/usr/bin/env bash
# Installs the missing ones of these Debian packages, as root on Debian or Ubuntu; elsewhere prints the command to run.
# Usage: install-packages.sh "what does not work without them" PACKAGE...
set -eu

sentence=$1
shift
missing=()
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
test ${#missing[@]} -gt 0 || exit 0

if test "$(id -u)" -eq 0 && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  offered=() unknown=()
  for package in "${missing[@]}"; do
    if LC_ALL=C apt-cache policy "$package" | grep -q 'Candidate: [^(]'; then offered+=("$package"); else unknown+=("$package"); fi
  done
  if apt-get install -y -qq --no-install-recommends "${offered[@]}"; then
    test ${#unknown[@]} -eq 0 || echo "This system's repositories do not offer: ${unknown[*]}. What needs them is skipped."
    exit 0
  fi
fi
echo "$sentence On Debian or Ubuntu:"
echo "  sudo apt-get install --no-install-recommends ${missing[*]}"
