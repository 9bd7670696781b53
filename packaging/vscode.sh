#!/usr/bin/env bash
# Packages the extension for VS Code.
#
#   packaging/vscode.sh OUT                     without a server, for every platform
#   packaging/vscode.sh OUT PLATFORM SERVER     with this server inside, for a platform such as linux-x64
#
# The versions of the dependencies come from the lock file.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd) platform=${2:-} server=${3:-}
[ -z "$server" ] || server=$(cd "$(dirname "$server")" && pwd)/$(basename "$server")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -rp editors/vscode/. "$work"
rm -rf "$work/server" "$work/out"
cp LICENSE CHANGELOG.md "$work"
cd "$work"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --silent
if [ -n "$server" ]; then
  mkdir server
  cp "$server" server/
  chmod +x server/*
fi
# The bundle that esbuild wrote already contains the only dependency.
npx --no-install vsce package --no-dependencies ${platform:+--target "$platform"} \
  --out "$out/ptx-analyzer${platform:+-$platform}.vsix"
ls -l "$out"
