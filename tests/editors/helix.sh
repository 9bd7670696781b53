#!/usr/bin/env bash
# Tests Helix in a terminal. Its configuration only names the server; Helix has no other support for PTX.
#
#   HELIX=hx SERVER=target/release/ptx-lsp tests/editors/helix.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
server=${SERVER:-$root/target/release/ptx-lsp}
work=$(mktemp -d)
socket=ptx-helix-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/helix"
cat >"$work/helix/languages.toml" <<TOML
[language-server.ptx]
command = "$server"

[[language]]
name = "ptx"
scope = "source.ptx"
file-types = ["ptx"]
roots = []
comment-token = "//"
language-servers = ["ptx"]
TOML
cat >"$work/helix/config.toml" <<'TOML'
[editor]
end-of-line-diagnostics = "hint"
[editor.lsp]
display-inlay-hints = true
[editor.inline-diagnostics]
cursor-line = "hint"
TOML
sed 's/fma\.rn\.f32/fna.rn.f32/' "$root/examples/saxpy.ptx" >"$work/saxpy.ptx"
line=$(grep -n fna.rn.f32 "$work/saxpy.ptx" | cut -d: -f1)
tmux -L "$socket" -f /dev/null new-session -d -s hx -x 150 -y 50 \
  "env XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work XDG_DATA_HOME=$work ${HELIX:-hx} --log $work/log $work/saxpy.ptx:$line:5"
keys() { tmux -L "$socket" send-keys -t hx "$@"; }
screen() { tmux -L "$socket" capture-pane -p -t hx; }
shows() { # WHAT TEXT: waits until the screen has the text
  for _ in $(seq 150); do
    if screen | grep -qF -- "$2"; then return; fi
    sleep 0.1
  done
  printf 'FAIL Helix shows no %s ("%s"):\n%s\n' "$1" "$2" "$(screen)"
  tail -5 "$work/log" 2>/dev/null || true
  exit 1
}
shows diagnostic 'unknown instruction'
# The corrected word.
keys l r m
shows 'mended line' 'fma.rn.f32'
keys g g
shows hint 'occupancy'
keys ":$line" Enter w l
keys Space k
shows hover 'FFMA'
keys Escape
keys o 'ld.global.'
keys C-x
shows completion 'b32'
shows completion 'u32'
keys Escape Escape
[ -z "${PICTURES:-}" ] || screen >"$PICTURES/helix.txt"
keys ':q!' Enter
echo "Helix $("${HELIX:-hx}" --version): ok"
