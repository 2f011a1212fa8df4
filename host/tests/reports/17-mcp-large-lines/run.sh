#!/usr/bin/env bash
# Source: Consiliency/pmcp#82, TokenRhythm/opensquilla#953, DeusData/codebase-memory-mcp#1375. Kind: answers of megabytes; one above the bound costs
# its own call and says so, the next call works at once.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import json
T=lambda n:{"name":n,"inputSchema":{"type":"object"}}
json.dump({"tools":[T("two"),T("eight"),T("twenty"),T("small")],"calls":{"two":{"content":[{"type":"text","text":"x"*2000000}]},"eight":{"content":[{"type":"text","text":"y"*8000000}]},"twenty":{"content":[{"type":"text","text":"z"*20000000}]},"small":{"content":[{"type":"text","text":"tiny"}]}}},open("spec.json","w"))
PY
mcp_home "$PWD/spec.json"; mcp_ready
printf '%s\n' '{"id":"1","tool":"mcp__srv__two","args":{}}' '{"id":"2","tool":"mcp__srv__eight","args":{}}' '{"id":"3","tool":"mcp__srv__twenty","args":{}}' '{"id":"4","tool":"mcp__srv__small","args":{}}' > b
timeout 120 "$JAATO" call --batch < b > o.jsonl 2>$T/err
cut -c1-220 o.jsonl; head -c 300 $T/err
grep -q tiny o.jsonl && ok "the next call works" || bad "the call behind a large answer fails"
sed -n 3p o.jsonl | grep -qi 'large\|long\|bytes\|MiB\|16' && ok "the large one says why" || bad "the large one does not say why: $(sed -n 3p o.jsonl | cut -c1-200)"
verdict
