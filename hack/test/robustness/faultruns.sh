#!/usr/bin/env bash
# Runs seeded fault runs, in an installation of its own for every few seeds, and adds the results to the
# ledger. Seeds that the ledger has as passed with the present code are skipped.
# Usage: faultruns.sh BIN SEEDS ENGINE... BIN is the folder with the programs, SEEDS is a range such as
# 1-200, and each ENGINE is cluster or postgres.
set -euo pipefail

bin=$(cd "${1:?give the folder with the programs as the first argument}" && pwd)
seeds=${2:?give the seeds as the second argument, such as 1-200}
shift 2
if ! [[ $seeds =~ ^[0-9]+(-[0-9]+)?$ ]]; then
	echo "SEEDS is \"$seeds\": give a number or a range such as 1-200" >&2
	exit 2
fi
first=${seeds%-*} last=${seeds#*-}
# Runs leave their records behind, which count towards the limits of a site and slow restarts down.
seeds_per_installation=5

cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
go test -vet=off -c -o "$scratch/faultruns.test" .
failed=0
for engine; do
	for ((from = first; from <= last; from += seeds_per_installation)); do
		to=$((from + seeds_per_installation - 1))
		"$scratch/faultruns.test" -test.v -test.timeout 60m -bin "$bin" -writers 8 -engine "$engine" \
			-seeds "$from-$((to < last ? to : last))" -ledger ledger.tsv -fault-logs "$bin/fault-runs" \
			-ginkgo.label-filter fault-runs -ginkgo.succinct -ginkgo.no-color || failed=1
	done
done
exit $failed
