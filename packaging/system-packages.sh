#!/usr/bin/env bash
# The programs that skep's tests talk to and that no Python package brings. As root on Debian or Ubuntu they are
# installed, elsewhere the line to run is printed; then the tests that need one say so.
set -eu

PACKAGES=(
  dbus          # a private session bus
  gnome-keyring # the Secret Service
  iproute2      # networks of a test's own
  nftables      # and the firewalls between them
  xvfb          # an X server of a test's own
  xdotool       # which moves its pointer
  openbox       # a window manager that tells which window is in the foreground
  x11-utils     # xprop, which asks it
  mutter        # GNOME's compositor, with its idle monitor
  sway          # a Wayland compositor without a screen
  swayidle      # and what it tells of idleness
  python3-dbusmock # stand-ins for what listens on the buses of a desktop
)

missing=()
for package in "${PACKAGES[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
test ${#missing[@]} -gt 0 || exit 0

if test "$(id -u)" -eq 0 && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  if apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; then exit 0; fi
fi
echo "Some tests need programs that are not installed. On Debian or Ubuntu:"
echo "  sudo apt-get install --no-install-recommends ${missing[*]}"
