#!/usr/bin/env bash
# Source: IBM/mcp-context-forge#5472 (structured content alone), anthropics/claude-code#76257, cristianuibar/bricks-mcp#45 (no structured content,
# lists for objects), ArcadeAI/arcade-mcp#817. Kind: results that are legal or nearly so and get lost.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import json
out={"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
T=lambda n,**k: dict({"name":n,"inputSchema":{"type":"object"}},**k)
json.dump({"ping":[],"tools":[T("only",outputSchema=out),T("wrong",outputSchema=out),T("none",outputSchema=out),T("nullstruct"),T("liststruct"),T("noerr"),T("errstruct",outputSchema=out),T("empty"),T("bare"),T("meta"),T("emb")],
"calls":{"only":{"content":[],"structuredContent":{"n":7}},"wrong":{"content":[{"type":"text","text":"t"}],"structuredContent":{"n":"seven"}},"none":{"content":[{"type":"text","text":"plain-seven"}]},
"nullstruct":{"content":[{"type":"text","text":"text-seven"}],"structuredContent":None,"isError":None},"liststruct":{"content":[],"structuredContent":[1,2,7]},"noerr":{"content":[{"type":"text","text":"x7"}],"isError":"false"},
"errstruct":{"isError":True,"content":[],"structuredContent":{"error":"quota-seven"}},"empty":{"content":[]},"bare":{},"meta":{"_meta":{"a":1},"content":[{"type":"text","text":"m7","annotations":{"audience":["user"],"priority":1}}]},
"emb":{"content":[{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"emb-seven"}},{"type":"resource_link","uri":"file:///b","name":"b"}]}}},open("spec.json","w"))
PY
mcp_home "$PWD/spec.json"; mcp_ready
want() { call "mcp__srv__$1" '{}' > o.json; cat o.json $T/err | tr -d '\n ' | grep -q "$2" && ok "$1" || bad "$1: $(cat o.json $T/err | tr -d '\n' | head -c 220)"; }
want only '"n":7'; want wrong 'seven\|t'; want none plain-seven; want nullstruct text-seven; want liststruct '\[1,2,7\]'; want noerr x7; want errstruct quota-seven; want empty 'content\|empty'; want bare 'content\|empty'; want meta m7; want emb emb-seven
call mcp__srv__nullstruct '{}' | grep -q '"structured": null' && echo "  note: a structured null is shown next to the text"
verdict
