#!/usr/bin/env bash
# Source: AltimateAI/altimate-code#1098, editor-code-assistant/eca#339, helixml/helix#1780. Kind: one file with a huge line or a byte that is no
# UTF-8 spoils a search; UTF-16 files (which ripgrep searches) are passed over.
. "$(dirname "$0")/../lib/lib.sh"
echo 'const needle = 1' > src.ts
python3 - <<'PY'
open("bundle.js","w").write('var a="'+"x"*900000+'";needle;var b="'+"y"*90000+'"\n')
open("weird.txt","wb").write(b"needle \xff\xfe tail\n")
open("u16le.txt","wb").write(b"\xff\xfe"+"needle in utf-16\r\n".encode("utf-16-le"))
open("u16be.txt","wb").write(b"\xfe\xff"+"needle in utf-16\r\n".encode("utf-16-be"))
open("sjis.txt","wb").write("設定 needle ファイル\n".encode("shift_jis"))
PY
call grep_content '{"pattern":"needle"}' > g.json
python3 - <<'PY' > seen
import json; d=json.load(open("g.json")); print(" ".join(sorted({m["file"] for m in d["matches"]})), len(json.dumps(d)), {k:d[k] for k in d if k.startswith("skip") or k in("note","unreadable")})
PY
echo "  $(cat seen)"
for f in src.ts bundle.js weird.txt sjis.txt; do grep -q "$f" seen && ok "$f" || bad "$f not found"; done
for f in u16le.txt u16be.txt; do grep -q "$f" seen && ok "$f" || bad "$f: a text that readFile reads is not searched ($(cat seen))"; done
[ $(stat -c %s g.json) -lt 40000 ] && ok "answer is short" || bad "answer has $(stat -c %s g.json) bytes"
verdict
