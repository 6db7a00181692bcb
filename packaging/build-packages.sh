#!/usr/bin/env bash
# System packages for building and checking skep's packages. As root on Debian or Ubuntu they are installed, elsewhere the
# command is printed. Argument: the Python that is frozen, which needs its shared library.
set -eu

PACKAGES=(
  binutils           # objdump, by which PyInstaller finds the libraries that others need
  dpkg               # dpkg-deb
  zstd               # the archive's compression
  lintian            # checks a .deb,
  desktop-file-utils # a menu entry,
  appstream          # and its AppStream metadata
  debootstrap        # a bare Debian to install into
)
python=${1:-python3}
"$python" - <<'CHECK' || PACKAGES+=("lib$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')")
import ctypes, sys, sysconfig, os
name = sysconfig.get_config_var("INSTSONAME") or ""
paths = [os.path.join(sysconfig.get_config_var("LIBDIR") or "", name), name]
def loads(path):
    try:
        return bool(ctypes.CDLL(path))
    except OSError:
        return False
sys.exit(".so" in name and not any(map(loads, paths)))
CHECK

exec "$(dirname "$0")/install-packages.sh" \
  "Packages cannot be built or checked whole without more programs." "${PACKAGES[@]}"
