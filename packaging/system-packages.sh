#!/usr/bin/env bash
# The programs that skep's tests talk to and that no Python package brings. As root on Debian or Ubuntu they are
# installed, elsewhere the line to run is printed; then the tests that need one say so.
set -eu

PACKAGES=(
  gcc           # builds the stand-in for NVIDIA's library,
  libc6-dev     # with the C library's headers
  dbus          # a private session bus
  gnome-keyring # the Secret Service
  python3-dbusmock # stand-ins for what listens on the buses of a desktop
  iproute2      # networks of a test's own
  nftables      # and the firewalls between them
  xvfb          # a screen of a test's own,
  openbox       # with a window manager,
  trayer        # a tray,
  xdotool       # a hand that moves and clicks,
  x11-utils     # and xprop, which asks what is there
  desktop-file-utils # checks the entry that starts skep at login
  at-spi2-core  # the accessibility bus,
  python3-pyatspi # and what reads it, with the system's own Python
  mutter        # GNOME's compositor, with its idle monitor
  sway          # a Wayland compositor without a screen
  swayidle      # and what it tells of idleness
  libegl1       # Qt, on the screen and without one
  libgl1
  libxkbcommon-x11-0
  libxcb-cursor0 # Qt on X11
  libxcb-icccm4
  libxcb-image0
  libxcb-keysyms1
  libxcb-render-util0
  libxcb-shape0
  libxcb-xkb1
)

exec "$(dirname "$0")/install-packages.sh" \
  "Some tests need programs that are not installed." "${PACKAGES[@]}"
