#!/usr/bin/env bash
# Draws the icon of the extension from its SVG, with Chromium.
set -euo pipefail
cd "$(dirname "$0")/../editors/vscode/images"
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --default-background-color=00000000 \
  --window-size=256,256 --screenshot="$PWD/icon.png" "file://$PWD/icon.svg" 2>/dev/null
