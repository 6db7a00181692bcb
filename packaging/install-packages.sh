#!/usr/bin/env bash
# Installs those of the Debian packages that are missing, as root on Debian or Ubuntu; elsewhere prints the line to run.
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
  if apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; then exit 0; fi
fi
echo "$sentence On Debian or Ubuntu:"
echo "  sudo apt-get install --no-install-recommends ${missing[*]}"
