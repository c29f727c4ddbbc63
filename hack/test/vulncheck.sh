#!/usr/bin/env bash
# Looks for known vulnerabilities in what the programs call. Usage: hack/test/vulncheck.sh <govulncheck>, from the root.
#
# Exit status: 0 where there are none, 3 where there are some, 75 where the database of vulnerabilities cannot be
# reached, so that nothing is known, and 1 for other failures. VULNDB names another database than https://vuln.go.dev.
set -uo pipefail

database=${VULNDB:-https://vuln.go.dev}
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

"$1" -db "$database" ./... 2>"$errors"
status=$?
cat "$errors" >&2
if [[ $status -ne 0 && $status -ne 3 ]] && grep -q 'fetching vulnerabilities' "$errors"; then
	echo "vulncheck: the vulnerability database $database cannot be reached, so nothing is known about vulnerabilities." \
		"Run this where it can be reached, or name a copy of it by VULNDB." >&2
	exit 75
fi
exit $status
