#!/usr/bin/env bash
# Runs the Neovim client against the server and checks what a user sees. Needs Neovim 0.11 or newer.
#
#   NVIM=nvim SERVER=target/release/ptx-lsp tests/editors/neovim.sh
#
# With CAPTURE=FILE also writes the screen of a terminal session, with colours as escape sequences (needs tmux).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
nvim=${NVIM:-nvim}
export SERVER=${SERVER:-$root/target/release/ptx-lsp} ROOT=$root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work XDG_STATE_HOME=$work XDG_DATA_HOME=$work XDG_CACHE_HOME=$work
cp "$root/examples/saxpy.ptx" "$work/saxpy.ptx"
cat >"$work/init.lua" <<'LUA'
vim.opt.swapfile = false
vim.opt.runtimepath:append(vim.env.ROOT .. '/editors/neovim')
vim.lsp.config('ptx', { cmd = { vim.env.SERVER } })
require('ptx').setup()
vim.diagnostic.config({ virtual_text = true, signs = true })
LUA
cd "$work"
"$nvim" --headless --clean -u init.lua -c "luafile $root/tests/editors/neovim.lua"
[ -n "${CAPTURE:-}" ] || exit 0

tmux -L ptx -f /dev/null new-session -d -s ptx -x 150 -y 42 \
    "env TERM=tmux-256color COLORTERM=truecolor $nvim --clean -u init.lua +'set termguicolors number laststatus=0' saxpy.ptx"
trap 'tmux -L ptx kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
keys() { tmux -L ptx send-keys -t ptx "$@"; sleep 1; }
sleep 2
keys ':PtxSass' Enter
keys '/fma' Enter
keys 'ofna.rn.f32 %f5, %f1, %f2, %f3;' Escape
keys 'k' 'K'
sleep 1
tmux -L ptx capture-pane -e -p -t ptx >"$CAPTURE"
