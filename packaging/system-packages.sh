#!/usr/bin/env bash
# System programs that skep's tests use and no Python package contains. As root on Debian or Ubuntu they are installed,
# elsewhere the command is printed; tests without their program are skipped with a message.
set -eu

PACKAGES=(
  gcc           # builds the stand-in for NVIDIA's library,
  libc6-dev     # with the C library's headers
  dbus          # a private session bus
  gnome-keyring # the Secret Service
  python3-dbusmock # stand-ins for services on a desktop's buses
  iproute2      # private networks for tests
  nftables      # and the firewalls between them
  xvfb          # a private screen for tests,
  openbox       # with a window manager,
  trayer        # a tray,
  xdotool       # pointer and keyboard input,
  x11-utils     # and xprop, which reads window properties
  desktop-file-utils # checks the entry that starts skep at login
  at-spi2-core  # the accessibility bus,
  python3-pyatspi # and a client, for the system's own Python
  mutter        # GNOME's compositor, with its idle monitor
  sway          # a Wayland compositor without a screen
  swayidle      # and its idle notifications
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
