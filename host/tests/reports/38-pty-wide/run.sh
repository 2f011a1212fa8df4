#!/usr/bin/env bash
# Source: nao1215/atago#432, pexpect/pexpect#233. Kind: wide characters on the screen that a model reads: columns, wrap, half-overwritten cells, combining marks, emoji with joiners.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY' > b
import json
def sp(cmd,cols=20,rows=4): return {"tool":"shell_spawn","args":{"command":cmd,"cols":cols,"rows":rows}}
c=[r"printf '\033[2J\033[1;1H日本語\033[1;7H[OK]\033[3;1H'; sleep 0.3", r"printf '\033[2J\033[1;1H日本語\033[1;2Hx\033[3;1H'; sleep 0.3", r"printf 'あいうえおかきくけこ\n'", r"printf 'e\314\201 n\314\203 👨‍👩‍👧 ok\n'", r"printf '한글\033[1;5Hend\n'"]
for i,x in enumerate(c): print(json.dumps(sp("bash -c "+json.dumps(x).replace("\\\\","\\") if 0 else x, 10 if i==2 else 20)))
PY
timeout 60 "$JAATO" call --batch < b > o.jsonl 2>err; python3 - <<'PY' > r
import json
for l in open("o.jsonl"):
    d=json.loads(l); print(json.dumps(d.get("result",d),ensure_ascii=False)[:300])
PY
cat r | sed 's/^/  /' | cut -c1-260
grep -q '日本語\[OK\]' r && ok "cursor columns" || bad "日本語[OK] is not seen"
sed -n 2p r | grep -q ' x本語' && ok "half a wide cell is broken as a terminal does" || bad "overwritten half: $(sed -n 2p r | cut -c1-120)"
sed -n 3p r | grep -q 'かきくけこ' && ok "wrap" || bad "wrap"
sed -n 4p r | grep -q "ok" && ok "joiners" || bad joiners
sed -n 5p r | grep -q '한글end' && ok "hangul" || bad "hangul: $(sed -n 5p r | cut -c1-120)"
verdict
