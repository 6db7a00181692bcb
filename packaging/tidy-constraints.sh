#!/usr/bin/env bash
# Converts compiled requirements to constraints: without pip-compile's comments and torch's local version.
set -eu
echo "# Compiled by \`make lock\`; every version skep is tested with. torch carries no local version: a CPU or CUDA build of it fits."
grep -v '^#' | sed '/^$/d; s/^\(torch==[0-9.]*\)+.*/\1/'
