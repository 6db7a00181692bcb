#!/usr/bin/env bash
# Reads compiled requirements, writes constraints: no comments of the tool's, no local version of torch.
set -eu
echo "# Compiled by \`make lock\`; every version skep is tested with. torch carries no local version: a CPU or CUDA build of it fits."
grep -v '^#' | sed '/^$/d; s/^\(torch==[0-9.]*\)+.*/\1/'
