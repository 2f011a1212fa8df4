#!/usr/bin/env bash
# Source: dduan/tre#141, oven-sh/bun#41985, denoland/deno#3950, microsoft/WSL#3564. Kind: names that are not UTF-8, or have line ends, blanks at the end, a dash in front or control characters.
# Every name that a search returns must open, or the result must say that it cannot.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import os
for n in [b"plain.txt",b"zo\xe8.txt",b"a\nb.txt",b"-rf.txt",b"trail ",b" lead.txt",b"tab\there.txt",b"q\"uote'.txt",b"back\\slash.txt",b"star*.txt",b"esc\x1b[31m.txt",b"\xed\xa0\x80.txt","é.txt".encode(),"é.txt".encode(),"🚀.txt".encode(),b"~tilde.txt",b"$HOME.txt",b"%41.txt",b"a:b.txt"]: open(n,"wb").write(b"needle "+n.replace(b"\n",b"_")[:10]+b"\n")
PY
call glob_files '{"pattern":"*"}' > g.json; call grep_content '{"pattern":"needle"}' > s.json
python3 - <<'PY' > r
import json,subprocess,os
J=os.environ["JAATO"]; g=json.load(open("g.json")); s=json.load(open("s.json")); names=[f["path"] for f in g["files"]]; on=len([n for n in os.listdir(b".") if not n.endswith(b".json") and n not in(b"r",)])
print("on disk",on,"glob",g["total"],"grep",len({m["file"] for m in s["matches"]}),"note",str(g.get("note"))[:150],str(g.get("unreadable"))[:200])
bad=[]
for n in sorted(set(names)|{m["file"] for m in s["matches"]}):
    if n.endswith(".json") or n=="r": continue
    r=subprocess.run([J,"call","readFile",json.dumps({"path":n})],capture_output=True,text=True,timeout=60)
    # A name that is not UTF-8 cannot be given back: both answers must say so.
    told="\ufffd" in n and "UTF-8" in str(g.get("note")) and "UTF-8" in r.stderr
    if "needle" not in r.stdout and not told: bad.append((n,r.stderr[:100]))
print("do not open:",bad)
PY
cat r | cut -c1-600; grep -q 'do not open: \[\]' r && ok "each given name opens" || bad "given, but do not open: $(sed -n 2p r | cut -c1-400)"
grep -q panicked err 2>/dev/null && bad panic
verdict
