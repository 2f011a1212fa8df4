#!/usr/bin/env bash
# Kind: the first request to one's own server has no credential, though there is one; only a refusal brings it.
. "$(dirname "$0")/../lib/lib.sh"
cat > server.py <<'P'
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        keys = [self.headers.get(n) for n in ("x-goog-api-key", "x-api-key", "authorization")]
        with open("keys", "a") as f: f.write(f"{next((k for k in keys if k), 'none')}\n")
        self.send_response(400); self.send_header("content-length", "0"); self.end_headers()
s = http.server.HTTPServer(("127.0.0.1", 0), H)
open("port", "w").write(str(s.server_port)); s.serve_forever()
P
python3 server.py & PIDS="$PIDS $!"
for _ in $(seq 100); do [ -s port ] && break; sleep 0.05; done
url="http://127.0.0.1:$(cat port)"
unset OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY
check() { # VARIABLE MODEL BASE_URL_VARIABLE
  rm -f keys; env "$1=key-of-mine" "$3=$url" timeout 60 "$JAATO" run --model "$2" hi > out 2> err
  case "$(head -1 keys)" in *key-of-mine) ok "$1: in the first request" ;; *) bad "$1: the first request has $(head -1 keys)" ;; esac
}
check GEMINI_API_KEY google/gemini-x GOOGLE_GEMINI_BASE_URL
check GOOGLE_API_KEY google/gemini-x GOOGLE_GEMINI_BASE_URL
check GOOGLE_GENAI_API_KEY google/gemini-x GOOGLE_GEMINI_BASE_URL
check ANTHROPIC_API_KEY anthropic/claude-x ANTHROPIC_BASE_URL
check ANTHROPIC_AUTH_TOKEN anthropic/claude-x ANTHROPIC_BASE_URL
check OPENAI_API_KEY openai/m OPENAI_BASE_URL
verdict
