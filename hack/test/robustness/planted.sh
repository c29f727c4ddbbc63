#!/usr/bin/env bash
# Proves that the suite catches what it is there to catch: builds the API server with
# each bug of planted/ from a copy of the last commit, runs the specs with the labels that
# the patch names against it, and fails unless they fail for the reason that it names. Where a
# patch names an engine and kinds of faults, one of a few fault runs with each kind must fail.
# Usage: planted.sh BIN [BUG...]. BIN is the folder with the programs, after `make build`,
# BUG the name of a patch without its ending. Default: all.
set -euo pipefail

bin=$(cd "${1:?give the folder with the programs as the first argument}" && pwd)
shift
cd "$(dirname "$0")/../../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$bin/apiserver-planted" "$bin/robustness.test"' EXIT

go test -c -o "$bin/robustness.test" ./hack/test/robustness
if [ $# -eq 0 ]; then
	set -- $(basename -s .patch hack/test/robustness/planted/*.patch)
fi
# expect_caught LOG ARGUMENT... fails unless the suite, with the arguments, fails for the reason in $caught.
expect_caught() {
	local log=$1
	shift
	if (cd hack/test/robustness && TMPDIR=$scratch "$bin/robustness.test" -test.timeout 20m -bin "$bin" -apiserver apiserver-planted \
		-ginkgo.no-color "$@") >"$log" 2>&1; then
		echo "planted bug $bug was not caught with $*" >&2
		exit 1
	fi
	if ! grep -m 3 -A 3 -E "(^ *|: |\] )$caught(: |\$)" "$log"; then
		tail -n 50 "$log"
		echo "planted bug $bug: the suite failed with $*, but not with \"$caught\"" >&2
		exit 1
	fi
}

for bug; do
	patch=$PWD/hack/test/robustness/planted/$bug.patch
	specs=$(sed -n 's/^Specs: //p' "$patch")
	faults=$(sed -n 's/^Faults: //p' "$patch")
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
	if [ -n "$specs" ]; then
		expect_caught "$scratch/$bug.log" -kills 6 -control-plane-kills 1 -pauses 2 -events 960 -delivery-kills 16 \
			-drain-patience 3m -ginkgo.label-filter "$specs"
	fi
	while read -r engine kinds; do
		for kind in ${kinds//,/ }; do
			expect_caught "$scratch/$bug.$engine.$kind.log" -engine "$engine" -fault-kinds "$kind" -seeds 1-5 -writers 8 \
				-ginkgo.label-filter fault-runs -ginkgo.fail-fast
			grep -E '^run [0-9]+ of .*: failed,' "$scratch/$bug.$engine.$kind.log"
		done
	done <<<"$faults"
done
echo "every planted bug was caught"
