#!/usr/bin/env bash
# Source: OpenHands/software-agent-sdk#5108, openclaw/openclaw#114895, anthropics/claude-code#85842. Kind: a UTF-8 file with one
# byte that is none. Hard. Untouched bytes must stay; what is written must be in the encoding of the rest of the file (UTF-8).
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
body = ("# Überblick über Größen — naïve Maße, 日本語のメモ\n" * 20).encode() + b"price = 5\n" + b"# legacy: caf\xe9\n"
open("f.py", "wb").write(body)
PY
cp f.py before.py
call readFile '{"path":"f.py"}' > read.json; grep -q 'Überblick' read.json && ok "read as UTF-8" || bad "the model reads mojibake: $(python3 -c "import json;print(json.dumps(json.load(open('read.json')))[:160])" 2>/dev/null; head -c 160 read.json)"
call updateFile '{"path":"f.py","old":"price = 5","new":"price = 7  # für später"}' > out.json || ok "refused: $(head -1 $T/err)"
python3 - <<'PY' && ok "the new text is UTF-8 or nothing was written" || bad "written in another encoding than the rest of the file: $(grep -a 'price' f.py | od -c | head -3 | tr '\n' ' ')"
b = open("f.py", "rb").read(); a = open("before.py", "rb").read()
import sys
want = a.replace(b"price = 5", "price = 7  # für später".encode())
sys.exit(0 if b in (a, want) else 1)
PY
verdict
