#!/bin/sh
# build.sh FOLDER installs the pinned packages into FOLDER, and writes the files of the API reference to
# FOLDER/assets: those that apiserver/portal embeds.
set -eu
source=$(dirname "$0")
mkdir -p "$1/assets"
cp "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$1"
(cd "$1" && npm ci --silent --ignore-scripts --no-audit --no-fund)
from=$1/node_modules/swagger-ui-dist
for name in swagger-ui-bundle.js swagger-ui.css; do
	sed '/sourceMappingURL/d' "$from/$name" > "$1/assets/$name"
done
cp "$from/swagger-ui-bundle.js.LICENSE.txt" "$1/assets/swagger-ui-bundle.js.LICENSE.txt"
cp "$from/LICENSE" "$1/assets/swagger-ui.LICENSE.txt"
cp "$from/favicon-32x32.png" "$1/assets/icon.png"
