#!/usr/bin/env bash
# Source: kud/mcp-jenkins#6 (JSON log lines), microsoft/azure-devops-mcp#147, hurttlocker/o8#1541, Kapeli/dash-mcp-server#10. Kind: a stdio server
# that prints banners, JSON that is not a message, colours, blank lines and bytes that are not UTF-8 between its messages, with CR LF.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import json
json.dump({"eol":"\r\n","string_ids":False,"before":["\x1b[32m Server v1.2 ready \x1b[0m\n","\n","{\"level\":\"info\",\"msg\":\"up\"}\n","[]\n","null\n","123\n","\udcff\udcfe broken\n","{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"early\"}}\n"],
 "each":["Processing request of type X\n","{\"jsonrpc\": \"2.0\", \"id\": 1\n"],
 "tools":[{"name":"hello","inputSchema":{"type":"object"}}]}, open("spec.json","w"))
PY
mcp_home "$PWD/spec.json"; mcp_ready
call mcp__srv__hello '{}' > o.json; grep -q 'called' o.json && ok "called in spite of the noise" || bad "no call: $(head -c 300 $T/err)"
python3 - <<'PY'
import json; d=json.load(open("spec.json")); d["before"]=[]; d["each"]=['{"jsonrpc":"2.0","id":999,"result":{}}\n']; json.dump(d,open("spec.json","w"))
PY
timeout 60 "$JAATO" mcp logs srv > logs 2>&1; grep -q 'Server v1.2' logs && ok "the noise is in the log" || echo "  note: noise not in the log: $(head -3 logs)"
rm -rf "$HOME/.cache" "$HOME/.local"; mcp_ready; call mcp__srv__hello '{}' > o.json; grep -q 'called' o.json && ok "a response without a request is skipped" || bad "one response with an unknown id ends the connection: $(head -c 200 $T/connect | tr '\n' ' ')"
verdict
