#!/usr/bin/env bash
# Source: anthropics/claude-code#73158 and #81781 (BOM; CR LF with a colon), google-gemini/gemini-cli#28042 (blanks behind ---), pbakaus/impeccable#102,
# mattpocock/skills#908 (colons), netease/others: lists. Kind: front matter that people write and strict YAML refuses. Each skill must be listed with
# its description, or named with a reason. Hard.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import os
home=os.environ["HOME"]; D=lambda n: os.makedirs(f"{home}/.agents/skills/{n}",exist_ok=True) or f"{home}/.agents/skills/{n}/SKILL.md"
W=lambda n,b: open(D(n),"wb").write(b if isinstance(b,bytes) else b.encode())
W("a-bom","\ufeff---\nname: a-bom\ndescription: Marker abom\n---\nBody\n")
W("b-crlf","---\r\nname: b-crlf\r\ndescription: Marker bcrlf: with a colon\r\n---\r\nBody\r\n")
W("c-blanks","---  \nname: c-blanks\ndescription: Marker cblanks\n--- \t\nBody\n")
W("d-folded-colon","---\nname: d-folded-colon\ndescription: Marker dfolded use when\n  doing this: that or\n  something else\n---\nBody\n")
W("e-quotes","---\nname: e-quotes\ndescription: \"Marker equotes\" or \"fix it\"\n---\nBody\n")
W("f-apos","---\nname: f-apos\ndescription: 'Marker fapos' isn't 'quoted'\n---\nBody\n")
W("g-hash","---\nname: g-hash\ndescription: Marker ghash for C# and issue #12\n---\nBody\n")
W("h-star","---\nname: h-star\ndescription: *.md files Marker hstar\n---\nBody\n")
W("i-list","---\nname: i-list\ndescription: Marker ilist\nallowed-tools:\n  - Bash(git:*)\n  - Read\n---\nBody\n")
W("j-brackets","---\nname: j-brackets\ndescription: [WIP] Marker jbrackets: beta\n---\nBody\n")
W("k-tab","---\nname: k-tab\ndescription:\tMarker ktab\nmetadata:\n\tauthor: me\n---\nBody\n")
W("l-literal","---\nname: l-literal\ndescription: |\n  Marker lliteral: first\n  ---\n  second\n---\nBody\n")
W("m-rule","---\nname: m-rule\ndescription: Marker mrule\n---\n# T\n---\nmore\n---\n")
W("n-dup","---\nname: n-dup\ndescription: Marker ndup\ndescription: Marker ndup again\n---\nBody\n")
W("o-noname","---\ndescription: Marker onon\n---\nBody\n")
W("p-blankline","\n---\nname: p-blankline\ndescription: Marker pblank\n---\nBody\n")
W("q-percent","---\nname: q-percent\ndescription: %TEMP% Marker qpercent\n---\nBody\n")
W("r-at","---\nname: r-at\ndescription: @scope/pkg Marker rat\n---\nBody\n")
W("s-colon-nospace","---\nname: s-colon-nospace\ndescription:Marker snospace\n---\nBody\n")
W("t-utf16",b"\xff\xfe"+"---\nname: t-utf16\ndescription: Marker tutf16\n---\nBody\n".encode("utf-16-le"))
W("u-latin1",b"---\nname: u-latin1\ndescription: Marker ulatin caf\xe9\n---\nBody\n")
W("v-cr","---\rname: v-cr\rdescription: Marker vcr\r---\rBody\r")
W("w-descmap","---\nname: w-descmap\ndescription:\n  Marker wmap: yes\n  more: no\n---\nBody\n")
W("x-multikey","---\nname: x-multikey\ndescription: Marker xmulti\ntriggers: when: now, or: later\n---\nBody\n")
W("y-emoji","---\nname: y-emoji\ndescription: Marker yemoji 🚀 – “ok”\n---\nBody\n")
os.makedirs(f"{home}/.agents/skills/z-lower",exist_ok=True); open(f"{home}/.agents/skills/z-lower/skill.md","w").write("---\nname: z-lower\ndescription: Marker zlower\n---\nBody\n")
PY
timeout 60 "$JAATO" command prompts > list.raw 2>&1 || cat list.raw
python3 -c "import json;d=open('list.raw').read();print(json.loads(d[d.index('{'):])['result'])" > list || cat list.raw
for k in a-bom:abom b-crlf:bcrlf c-blanks:cblanks d-folded-colon:dfolded e-quotes:equotes f-apos:fapos g-hash:ghash h-star:hstar i-list:ilist j-brackets:jbrackets k-tab:ktab l-literal:lliteral m-rule:mrule n-dup:ndup o-noname:onon p-blankline:pblank q-percent:qpercent r-at:rat s-colon-nospace:snospace t-utf16:tutf16 u-latin1:ulatin v-cr:vcr w-descmap:wmap x-multikey:xmulti y-emoji:yemoji z-lower:zlower; do
  n=${k%:*}; m=${k#*:}
  if grep -q "Marker $m" list; then ok "$n"; elif grep -q "$n" list; then echo "  told: $(grep -m1 "$n" list | cut -c1-220)"; LEFT="${LEFT:-} $n"; else bad "$n is silently missing"; fi; done
[ -n "${LEFT:-}" ] && echo "  left out with a reason:$LEFT"
case "${LEFT:-}" in *d-folded*|*e-quotes*|*f-apos*|*n-dup*|*k-tab*|*u-latin*) bad "left out, where Claude Code, gemini-cli or pi read the skill:${LEFT}";; esac
grep -q 'C# and issue #12\|C# and issue' list && ok "text behind # stays" || echo "  note: $(grep ghash list | cut -c1-150)"
verdict
