#!/usr/bin/env bash
# Installs NVIDIA's public command-line tools from their PyPI packages into target/oracle and prints where they are:
#   eval "$(tests/oracle/install.sh)"
# They serve for comparison only: no part of them enters the product, and no unit test needs them.
set -euo pipefail
folder=$(cd "$(dirname "$0")/../.." && pwd)/target/oracle
assembler=13.0.88
disassembler=13.5.37

if [ ! -e "$folder/installed" ]; then
  mkdir -p "$folder"
  "${PYTHON:-python3}" -m venv "$folder/venv" >&2
  "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    "nvidia-cuda-nvcc==$assembler" \
    "nvidia-cuda-nvdisasm==$disassembler" "nvidia-cuda-cuobjdump==$disassembler" >&2
  touch "$folder/installed"
fi

find_tool() {
  find "$folder/venv/lib" -path "*/bin/$1" -type f -print -quit
}
for tool in ptxas nvdisasm cuobjdump; do
  path=$(find_tool "$tool")
  [ -n "$path" ] || { echo "the packages hold no $tool" >&2; exit 1; }
  chmod +x "$path"
  echo "export ${tool^^}='$path'"
done
# cuobjdump looks for nvdisasm in its own folder and on the PATH.
echo "export PATH='$(dirname "$(find_tool nvdisasm)")':\"\$PATH\""
