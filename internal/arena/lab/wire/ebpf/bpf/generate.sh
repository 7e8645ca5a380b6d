#!/bin/sh
# Builds the eBPF objects that package wire embeds, the same bytes everywhere
# with the same clang. Needs clang, llvm-strip and libbpf's headers
# (apt-get install clang llvm libbpf-dev). Run by `make generate`.
set -eu
cd "$(dirname "$0")"
for source in "$@"; do
	object=${source%.c}.o
	clang -O2 -g -Wall -Werror -target bpfel -mcpu=v3 \
		-fdebug-compilation-dir=. -I"/usr/include/$(uname -m)-linux-gnu" -c "$source" -o "$object"
	llvm-strip -g "$object"
done
