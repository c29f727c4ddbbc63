#!/usr/bin/env bash
# Proves that the suite catches what it is there to catch: builds the API server with
# each bug of planted/ from a copy of the last commit, runs the short suite under load
# against it, and fails unless that fails for the reason which the patch names.
# Usage: planted.sh BIN, the folder with the programs, after `make build`.
set -euo pipefail

bin=$(cd "${1:?the folder with the programs}" && pwd)
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$bin/apiserver-planted" "$bin/robustness.test"' EXIT

go test -c -o "$bin/robustness.test" ./hack/robustness
for patch in "$PWD"/hack/robustness/planted/*.patch; do
	bug=$(basename "$patch" .patch)
	caught=$(sed -n 's/^Caught as: //p' "$patch")
	mkdir "$scratch/$bug"
	git archive HEAD | tar -x -C "$scratch/$bug"
	(
		cd "$scratch/$bug"
		# The copy is no repository, and must not be taken for a part of one around it.
		GIT_CEILING_DIRECTORIES=$scratch git apply "$patch"
		go build -buildvcs=false -o "$bin/apiserver-planted" ./cmd/apiserver
	)
	echo "planted bug $bug: expecting \"$caught\""
	if (cd hack/robustness && TMPDIR=$scratch "$bin/robustness.test" -test.timeout 10m -bin "$bin" -apiserver apiserver-planted \
		-kills 6 -control-plane-kills 1 -pauses 2 -ginkgo.label-filter load -ginkgo.no-color) >"$scratch/$bug.log" 2>&1; then
		echo "planted bug $bug was not caught" >&2
		exit 1
	fi
	if ! grep -m 3 ": $caught: " "$scratch/$bug.log"; then
		tail -n 50 "$scratch/$bug.log"
		echo "planted bug $bug: the suite failed, but not with \"$caught\"" >&2
		exit 1
	fi
done
echo "every planted bug was caught"
