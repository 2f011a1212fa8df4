# Sourced by each run.sh. JAATO=/path/to/jaato may be set; everything happens in a folder of its own.
set -u
: "${JAATO:?set JAATO to the binary under test}"
export JAATO
LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
HERE=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
T=$(mktemp -d "${TMPDIR:-/tmp}/jb.XXXXXX")
PIDS=""
cleanup() { for p in $PIDS; do kill "$p" 2>/dev/null; done; chmod -R u+rwx "$T" 2>/dev/null; rm -rf "$T"; }
trap cleanup EXIT
mkdir -p "$T/home" "$T/w"
mkdir -m 700 "$T/run"
# Terminals are joined in a folder of its own, so that no other test lists them.
export HOME="$T/home" XDG_RUNTIME_DIR="$T/run"
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy 2>/dev/null
export OPENAI_API_KEY= ANTHROPIC_API_KEY= GEMINI_API_KEY=
cd "$T/w" || exit 2
FAILS=""
ok()  { echo "  ok: $1"; }
bad() { printf '  BAD: %s\n' "$(printf '%s' "$1" | tr '\n' ' ')"; FAILS="$FAILS; $1"; }
verdict() { if [ -z "$FAILS" ]; then echo PASS; else echo "FAIL$(printf '%s' "$FAILS" | tr '\n' ' ')"; exit 1; fi; }
call() { timeout 60 "$JAATO" call "$@" 2>"$T/err"; }        # call TOOL JSON
py() { python3 "$@"; }
# start_mock SCRIPT.json -> MOCK_URL ; requests are logged to $T/requests.jsonl
start_mock() {
  python3 "$LIB/mock.py" --script "$1" --log "$T/requests.jsonl" --port-file "$T/port" & PIDS="$PIDS $!"
  for _ in $(seq 100); do [ -s "$T/port" ] && break; sleep 0.05; done
  MOCK_PORT=$(cat "$T/port"); MOCK_URL="http://127.0.0.1:$MOCK_PORT"
}
# offered [TOOLS]: what a model is offered -> $T/offered.json ({name: parameters})
offered() {
  echo '[{"sse":[{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":"stop"}]},"data: [DONE]\n\n"]}]' > "$T/offer-script.json"
  rm -f "$T/requests.jsonl" "$T/port"; start_mock "$T/offer-script.json"
  JAATO_TOOLS_CORE_TOKENS_MAX=1000000 OPENAI_BASE_URL=$MOCK_URL/v1 timeout 60 "$JAATO" run --model openai/m --tools "${1:-mcp__*}" "go" > "$T/out" 2> "$T/err"
  python3 - "$T" <<'PY'
import json,sys,os
t=sys.argv[1]; d={}
if os.path.exists(t+"/requests.jsonl"):
    for l in open(t+"/requests.jsonl"):
        b=json.loads(l)["body"]
        if isinstance(b,dict) and "messages" in b: d={x["function"]["name"]:x["function"].get("parameters") for x in b.get("tools",[])}
json.dump(d,open(t+"/offered.json","w"))
PY
}
# mcp_home SPEC.json [NAME] [ARGS-before-python…]: a stdio server in ~/.mcp.json
mcp_home() {
  local name=${2:-srv}
  python3 - "$1" "$name" "$LIB/mcp.py" "$T" > "$HOME/.mcp.json" <<'PY'
import json,sys
spec,name,prog,t=sys.argv[1:5]
print(json.dumps({"mcpServers":{name:{"command":"python3","args":[prog],"env":{"MCP_SPEC":spec,"MCP_LOG":t+"/mcp.log"},"timeout":15000,"alwaysLoad":True}}}))
PY
}
mcp_ready() { timeout 60 "$JAATO" mcp connect "${1:-srv}" > "$T/connect" 2>&1 || echo "  note: $(head -c 200 "$T/connect")"; }
# mcp_http ARGS…: starts the fake server over HTTP and names it in ~/.mcp.json
mcp_http() {
  rm -f "$T/hport" "$T/http.log"; python3 "$LIB/mcp_http.py" --port-file "$T/hport" --log "$T/http.log" "$@" & PIDS="$PIDS $!"
  for _ in $(seq 100); do [ -s "$T/hport" ] && break; sleep 0.05; done
  echo "{\"mcpServers\":{\"srv\":{\"type\":\"http\",\"url\":\"http://127.0.0.1:$(cat "$T/hport")/mcp\",\"timeout\":10000}}}" > "$HOME/.mcp.json"
}
