#!/usr/bin/env bash
# Builds the files of a release for the current platform: an archive of the programs with their manual pages and
# completions, the wheel, and the extension with the server inside.
#
#   packaging/release.sh OUT TARGET VSCODE      such as dist x86_64-unknown-linux-gnu linux-x64
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd) target=$2 vscode=$3
cd "$(dirname "$0")/.."
suffix=
case $target in *windows*) suffix=.exe ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --locked -p ptx-analyzer --bins --target "$target"
built=${CARGO_TARGET_DIR:-target}/$target/release
name=ptx-analyzer-$target
mkdir -p "$work/$name/bin"
for program in ptx-lsp ptx-check ptxc sass; do
  cp "$built/$program$suffix" "$work/$name/bin/"
done
cp README.md CHANGELOG.md LICENSE "$work/$name/"
mkdir "$work/$name/editors"
cp -r editors/neovim "$work/$name/editors/"
"$built/ptx-lsp$suffix" manual "$work/$name"
tar -C "$work" -czf "$out/$name.tar.gz" "$name"

"${PYTHON:-python3}" -m venv "$work/python"
scripts=$work/python/bin
[ -d "$scripts" ] || scripts=$work/python/Scripts
"$scripts/python" -m pip install --quiet --disable-pip-version-check maturin==1.16.0
"$scripts/maturin" build --release --locked --target "$target" --out "$out"

packaging/vscode.sh "$out" "$vscode" "$built/ptx-lsp$suffix"
