#!/usr/bin/env bash
# Runs the Neovim client against the server and checks what a user sees. Needs Neovim 0.11 or newer.
#
#   NVIM=nvim SERVER=target/release/ptx-lsp tests/editors/neovim.sh
#
# With CAPTURE=FILE also writes the screen of a terminal session, with colors as escape sequences (needs tmux).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
nvim=${NVIM:-nvim}
export SERVER=${SERVER:-$root/target/release/ptx-lsp} ROOT=$root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work XDG_STATE_HOME=$work XDG_DATA_HOME=$work XDG_CACHE_HOME=$work
cp "$root/examples/saxpy.ptx" "$work/saxpy.ptx"
cp "$root"/tests/editors/calls.{ptx,cu} "$work"
cat >"$work/init.lua" <<'LUA'
vim.opt.swapfile = false
vim.opt.runtimepath:prepend(vim.env.ROOT .. '/editors/neovim')
vim.lsp.config('ptx', { cmd = { vim.env.SERVER } })
require('ptx').setup({ folding = true, linked_editing = true, format_on_type = true })
vim.diagnostic.config({ virtual_text = true, signs = true })
LUA
cd "$work"
"$nvim" --headless --clean -u init.lua -c "autocmd VimEnter * ++nested luafile $root/tests/editors/neovim.lua"

mkdir "$work/project"
cp "$root"/tests/editors/calls.{ptx,cu} "$work/project"
echo 'target = "sm_90"' >"$work/project/ptx-check.toml"
(cd "$work/project" && "$nvim" --headless --clean -u ../init.lua -c "autocmd VimEnter * ++nested luafile $root/tests/editors/features.lua")

# PTX inside another language, and machine code in a file.
cat >"$work/kernel.cu" <<'CUDA'
__device__ unsigned f(unsigned long long x)
{
    unsigned r;
    asm("add.u64 %0, %1, 1;" : "=r"(r) : "l"(x));
    return r;
}
CUDA
"$(dirname "$SERVER")/ptxc" -arch=sm_80 -o "$work/kernel.cubin" "$work/saxpy.ptx"
"$nvim" --headless --clean -u init.lua -c "autocmd VimEnter * ++nested luafile $root/tests/editors/embedded.lua"

# The colors without a server are the same as with it.
FILES="$work/saxpy.ptx $(echo "$root"/tests/kernels/{atomics,video,functions,switches,products}.ptx)" \
  "$nvim" --headless --clean -u init.lua -c "autocmd VimEnter * ++nested luafile $root/tests/editors/colors.lua"

# Without a server, the user gets advice, and files are still colored.
missing=$(SERVER=/none "$nvim" --headless --clean -u init.lua +'edit saxpy.ptx' \
  +"lua io.stdout:write('color: ', vim.fn.synIDattr(vim.fn.synID(26, 5, 1), 'name'), '\n')" +PtxSass \
  +'checkhealth ptx' +'%print' +'sleep 50m' +'qa!' 2>&1) ||
  { printf 'FAIL without a server: status %s\n%s\n' $? "$missing"; exit 1; }
for text in 'not on the PATH' 'color: ptxMnemonic' 'checkhealth ptx' 'ERROR the language server'; do
  grep -q "$text" <<<"$missing" || { printf 'FAIL without a server: no "%s" in\n%s\n' "$text" "$missing"; exit 1; }
done
# For colors, it is enough that the folder is on the runtime path.
plain=$("$nvim" --headless --clean --cmd "set runtimepath^=$root/editors/neovim" saxpy.ptx \
  +"lua io.stdout:write(vim.fn.synIDattr(vim.fn.synID(26, 5, 1), 'name'))" +'qa!' 2>&1) || plain+=" (status $?)"
[ "$plain" = ptxMnemonic ] || { echo "FAIL without setup: $plain"; exit 1; }
echo "Neovim $("$nvim" --version | head -1): ok"
[ -n "${CAPTURE:-}" ] || exit 0

# Limit the height of the hover page, which would otherwise hide the kernel.
echo "vim.keymap.set('n', 'K', function() vim.lsp.buf.hover({ max_height = 17 }) end)" >>"$work/init.lua"
cat >>"$work/saxpy.ptx" <<'PTX'

.visible .entry halve(.param .f32 a)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [a];
    fma.rn.f32 %f2, %f1, 0f3F000000, %r1;
    ret;
}
PTX
tmux -L ptx -f /dev/null new-session -d -s ptx -x 160 -y 52 \
    "env TERM=tmux-256color COLORTERM=truecolor $nvim --clean -u init.lua +'set termguicolors number laststatus=0' saxpy.ptx"
trap 'tmux -L ptx kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
keys() { tmux -L ptx send-keys -t ptx "$@"; sleep 0.7; }
shows() { # TEXT: waits until the screen has the text
  for _ in $(seq 300); do
    if tmux -L ptx capture-pane -p -t ptx | grep -qF -- "$1"; then return; fi
    sleep 0.1
  done
  printf 'FAIL: the screen has no "%s":\n%s\n' "$1" "$(tmux -L ptx capture-pane -p -t ptx)"
  exit 1
}
shows 'not compiled: register'
keys ':37' Enter '4l'
keys ':PtxSass' Enter
shows 'FFMA'
keys 'hl'
keys 'K'
shows '4 live registers'
tmux -L ptx capture-pane -e -p -t ptx >"$CAPTURE"
