#!/usr/bin/env python3
"""A proxy for a language server that records the messages of the client.

  export RECORDED=$PWD/target/release/ptx-lsp RECORD=$PWD/tests/recorded
  SERVER=$PWD/tests/editors/record.py tests/editors/neovim.sh
  node tests/editors/vscode/run.mjs EXTENSION.vsix EXTENSION.vsix tests/editors/record.py completion

Each session gets one file with one JSON object per line: {"send": MESSAGE} for each request and notification of the
client, and {"reply": ID} when the server's answer to a request was passed on. tests/tests/e2e/recorded.rs replays the
files. Paths of work folders are replaced by /project, and the client's replies to the server are left out. Tests that
need the server's own process, for example to end it, fail with this proxy.
"""
import json
import os
import re
import subprocess
import sys
import threading

if sys.argv[1:] not in ([], ["--stdio"]):
    os.execv(os.environ["RECORDED"], [os.environ["RECORDED"], *sys.argv[1:]])
server = subprocess.Popen([os.environ["RECORDED"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
log = open(os.path.join(os.environ["RECORD"], f"{os.getpid()}.jsonl"), "w", encoding="utf-8")
lock = threading.Lock()


def frames(stream):
    while True:
        header = b""
        while not header.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            if not byte:
                return
            header += byte
        length = int(re.search(rb"content-length: *(\d+)", header, re.I)[1])
        yield header, stream.read(length)


def write(entry):
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    text = re.sub(r"/tmp/(?:tmp\.|ptx-)[^/\"]*", "/project", text)
    with lock:
        log.write(text + "\n")
        log.flush()


def answers():
    for header, body in frames(server.stdout):
        message = json.loads(body)
        if "id" in message and "method" not in message:
            write({"reply": message["id"]})
        sys.stdout.buffer.write(header + body)
        sys.stdout.buffer.flush()


threading.Thread(target=answers, daemon=True).start()
for header, body in frames(sys.stdin.buffer):
    message = json.loads(body)
    if "method" in message:
        write({"send": message})
    server.stdin.write(header + body)
    server.stdin.flush()
server.stdin.close()
sys.exit(server.wait())
