#!/usr/bin/env bash
# Source: no single report. Kind: input that terminals mangle: 4,000 letters in one line, tabs that complete, lines of a paste with indentation into a REPL, control
# letters, a line that ends in a backslash, CJK, an unterminated quote, ^D, 20 KB into an editor-like reader.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY' > b
import json
P=lambda **k: print(json.dumps(k))
P(tool="shell_spawn",args={"command":"python3 -q -c \"import sys\nfor l in sys.stdin: print(len(l.rstrip('\\n')), ascii(l.rstrip('\\n')[-6:]))\""})
for t in ("x"*4000,"日本語","a\tb","back\\","it's \"q\"","  lead","trail  "): P(tool="shell_input",args={"session_id":"session_0","input":t+"\n"})
P(tool="shell_spawn",args={"command":"python3 -q"})
P(tool="shell_input",args={"session_id":"session_1","input":"def f(x):\n    if x:\n        return 'yes-%d' % x\n\n    return 'no'\n\nprint(f(41+1))\n"})
P(tool="shell_input",args={"session_id":"session_1","input":"print(len('''"+"y"*3000+"'''))\n"})
P(tool="shell_spawn",args={"command":"cat -A"})
P(tool="shell_input",args={"session_id":"session_2","input":"é\tü\n"})
P(tool="shell_control",args={"session_id":"session_2","key":"c-d"})
PY
timeout 90 "$JAATO" call --batch < b > o.jsonl 2>err
python3 - <<'PY' > r
import json
for i,l in enumerate(open("o.jsonl")):
    d=json.loads(l); x=d.get("result") or d; print(i, json.dumps(x.get("output",x),ensure_ascii=False)[-150:] if isinstance(x,dict) else x, d.get("error",""))
PY
sed 's/^/  /' r | cut -c1-220
grep -q "4000 'xxxxxx'" r && ok "4,000 letters" || bad "4,000 letters: $(sed -n 2p r | cut -c1-150)"
grep -q "3 '.*u65e5" r && ok CJK || bad "CJK: $(sed -n 3p r)"; grep -q "3 'a.*tb'" r && ok tab || bad "tab: $(sed -n 4p r)"; grep -q "5 'back" r && ok backslash || bad backslash; grep -q "6 '  lead'" r && ok lead || bad lead; grep -q "7 'rail  '" r && ok trail || bad trail
grep -q 'yes-42' r && ok "a pasted function" || bad "a pasted function: $(sed -n 10p r | cut -c1-200)"; grep -q '3000' r && ok "3,000 letters in a REPL" || bad "3,000 letters in a REPL"
verdict
