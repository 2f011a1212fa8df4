#!/usr/bin/env bash
# Kind: the gc takes results from the turn that is being worked on and keeps finished turns, so that the model asks again and again.
. "$(dirname "$0")/../lib/lib.sh"
cat > server.py <<'P'
import http.server, json, sys
requests = 0
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_GET(self): self.send_response(404); self.send_header("content-length", "0"); self.end_headers()
    def do_POST(self):
        global requests
        requests += 1
        body = json.loads(self.rfile.read(int(self.headers["content-length"]))); messages = body["messages"]
        tokens = len(json.dumps(messages) + json.dumps(body.get("tools"))) // 4
        last = max(i for i, m in enumerate(messages) if m["role"] == "user")
        have = sum(m["role"] == "tool" for m in messages[last:])
        with open("have", "a") as f: f.write(f"{have}\n")
        delta = {"role": "assistant", "content": "answer"} if have >= 2 else {"role": "assistant", "tool_calls": [
            {"index": 0, "id": f"c{requests}", "type": "function", "function": {"name": "cli_based_tool", "arguments": '{"command":"seq 1 1000"}'}}]}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop" if have >= 2 else "tool_calls"}],
               "usage": {"prompt_tokens": tokens, "completion_tokens": 30, "total_tokens": tokens + 30}}
        out = b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in ({"choices": [{"index": 0, "delta": delta}]}, end)) + b"data: [DONE]\n\n"
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.send_header("content-length", str(len(out))); self.end_headers(); self.wfile.write(out)
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
open("port", "w").write(str(s.server_port)); s.serve_forever()
P
for window in 8192 16384 32768; do
  rm -f port have; python3 server.py & PIDS="$PIDS $!"
  for _ in $(seq 100); do [ -s port ] && break; sleep 0.05; done
  mkdir -p "$HOME/.config/jaato"; printf 'model = "openai/mock"\n[models."openai/mock"]\ncontext_limit = %s\n' $window > "$HOME/.config/jaato/config.toml"
  for n in $(seq $((window / 2048))); do echo "question $n"; done |
    OPENAI_BASE_URL="http://127.0.0.1:$(cat port)/v1" timeout 120 "$JAATO" chat --yes > out 2> err; rc=$?
  requests=$(wc -l < have); expected=$((3 * (window / 2048)))
  [ $rc = 0 ] && [ "$requests" = $expected ] && ok "window $window: three requests a question" || bad "window $window: $requests requests instead of $expected, exit code $rc"
done
verdict
