#!/usr/bin/env bash
# Prints a CPython 3.11 to 3.14 that can make virtual environments: the one named as argument, else the first found.
# Installs what is missing with apt as root, otherwise prints the command to run.
set -eu

WANTED="CPython 3.11, 3.12, 3.13 or 3.14, not its free-threaded build"

# PySide6-Essentials has wheels for the stable ABI only, which the free-threaded build does not have
fits() {
  "$1" -c 'import sys, sysconfig
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
sys.exit(sys.implementation.name != "cpython" or free_threaded or not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

need() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
  else
    echo "skep needs these packages first. Please run:  sudo apt-get install $*" >&2
    exit 1
  fi
}

find_python() {
  # a name on the path may be a shim that does not run, so each is tried
  for candidate in "$@" python3 python3.13 python3.12 python3.14 python3.11; do
    if [ -n "$candidate" ] && fits "$candidate"; then echo "$candidate"; return; fi
  done
}

if [ -n "${1:-}" ] && ! fits "$1"; then
  echo "skep needs $WANTED, which $1 is not. Name another:  make setup PYTHON=/path/to/python3.13" >&2
  exit 1
fi
python=$(find_python "${1:-}")
if [ -z "$python" ]; then
  need python3 python3-venv
  python=$(find_python)
fi
if [ -z "$python" ]; then
  echo "skep needs $WANTED, and this system offers none. Name one:  make setup PYTHON=/path/to/python3.13" >&2
  exit 1
fi
"$python" -c 'import venv, ensurepip' 2>/dev/null \
  || need "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
echo "$python"
