#!/usr/bin/env bash
# Shows that the tests of moves find bugs: plants each bug of planted/ in a copy of the last commit, builds the
# API server and runs the specs that the patch names, or tests the package that it names, and fails unless
# they fail for the reason that it names.
# Usage: planted.sh BIN [BUG...]. BIN is the folder with the programs, after `make build`, BUG the name of a
# patch without its ending. Default: all.
set -euo pipefail

bin=$(cd "${1:?give the folder with the programs as the first argument}" && pwd)
shift
cd "$(dirname "$0")/../../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

go test -c -o "$scratch/move.test" ./hack/test/move
if [ $# -eq 0 ]; then
	set -- $(basename -s .patch hack/test/move/planted/*.patch)
fi
for bug; do
	patch=$PWD/hack/test/move/planted/$bug.patch
	specs=$(sed -n 's/^Specs: //p' "$patch")
	package=$(sed -n 's/^Package: //p' "$patch")
	caught=$(sed -n 's/^Caught as: //p' "$patch")
	mkdir -p "$scratch/$bug/source" "$scratch/$bug/bin"
	git archive HEAD | tar -x -C "$scratch/$bug/source"
	ln -s "$bin"/* "$scratch/$bug/bin"
	rm "$scratch/$bug/bin/apiserver"
	(
		cd "$scratch/$bug/source"
		# The copy is no repository, and must not be taken for a part of one around it.
		GIT_CEILING_DIRECTORIES=$scratch git apply "$patch"
		[ -n "$package" ] || go build -buildvcs=false -o "$scratch/$bug/bin/apiserver" ./cmd/apiserver
	)
	echo "planted bug $bug: expecting \"$caught\""
	if [ -n "$package" ]; then
		(cd "$scratch/$bug/source" && go test -count=1 "$package") >"$scratch/$bug.log" 2>&1 && found=no || found=yes
	elif (cd hack/test/move && PADDOCK_BIN=$scratch/$bug/bin "$scratch/move.test" -test.timeout 20m \
		-ginkgo.focus "$specs" -ginkgo.no-color) >"$scratch/$bug.log" 2>&1; then
		found=no
	else
		found=yes
	fi
	if [ $found = no ]; then
		echo "planted bug $bug was not found" >&2
		exit 1
	fi
	if ! grep -m 3 -F "$caught" "$scratch/$bug.log"; then
		tail -n 50 "$scratch/$bug.log"
		echo "planted bug $bug: the specs failed, but not with \"$caught\"" >&2
		exit 1
	fi
done
echo "every planted bug was found"
