#!/usr/bin/env bash
# Debian packages that the tests need beside Python. As root it installs what is missing; otherwise it prints the line to run.
set -eu

packages=(
    iproute2
    nftables
)

missing=()
for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
test ${#missing[@]} -gt 0 || exit 0
if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    apt-get install --yes --no-install-recommends "${missing[@]}"
else
    echo "sudo apt-get install --yes --no-install-recommends ${missing[*]}"
fi
