#!/usr/bin/env bash
# Source: aaif-goose/goose#1922 and #7462 (no hint), vercel-labs/agent-browser#1433 and #1670, icebear0828/codex-proxy#598, Portabase/portabase#456. Kind: a server with a self-issued certificate: untrusted (a hint?), with SSL_CERT_FILE, SSL_CERT_DIR, a bundle with CR LF, comments and other certificates, a missing file. Hard.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"; command -v openssl >/dev/null || { echo "  note: no openssl"; echo PASS; exit 0; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj '/CN=Test CA' >/dev/null 2>&1; openssl req -newkey rsa:2048 -nodes -keyout s.key -out s.csr -subj '/CN=localhost' >/dev/null 2>&1; printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > ext; openssl x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile ext -out s.pem >/dev/null 2>&1
cat > tls.py <<'PY'
import sys,json,ssl; from http.server import *; from chat import *
class H(BaseHTTPRequestHandler):
    protocol_version="HTTP/1.1"
    def log_message(self,*x): pass
    def do_GET(self): self.send_response(404); self.send_header("content-length","0"); self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0)); r=b"".join((x if isinstance(x,str) else f"data: {json.dumps(x)}\n\n").encode() for x in oatext("over-tls")["sse"]); self.send_response(200); self.send_header("content-type","text/event-stream"); self.send_header("content-length",str(len(r))); self.end_headers(); self.wfile.write(r)
s=ThreadingHTTPServer(("127.0.0.1",0),H); c=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain("s.pem","s.key"); s.socket=c.wrap_socket(s.socket,server_side=True); open(sys.argv[1],"w").write(str(s.server_port)); s.serve_forever()
PY
python3 tls.py $T/tp 2>/dev/null & PIDS="$PIDS $!"; for _ in $(seq 100); do [ -s $T/tp ] && break; sleep 0.05; done; U=https://localhost:$(cat $T/tp)/v1
go() { env JAATO_SESSION_ATTEMPTS_MAX=1 OPENAI_BASE_URL=$U OPENAI_API_KEY=k "$@" timeout 20 "$JAATO" run --model openai/m go > out 2>err; rc=$?; }
go A=1; grep -q over-tls out && bad "an unknown certificate is taken" || { grep -qi 'certificate' err && ok "untrusted: told $(grep -qi 'SSL_CERT' err && echo with the way out)" || bad "untrusted: $(head -c 200 err)"; }; grep -qi 'SSL_CERT' err || bad "untrusted: the error does not name SSL_CERT_FILE: $(tr '\n' ' ' < err | head -c 250)"
go SSL_CERT_FILE=$PWD/ca.pem; grep -q over-tls out && ok SSL_CERT_FILE || bad "SSL_CERT_FILE: $(head -c 200 err)"
mkdir certs; cp ca.pem certs/ca.pem; (cd certs; ln -s ca.pem $(openssl x509 -hash -noout -in ca.pem).0); go SSL_CERT_DIR=$PWD/certs; grep -q over-tls out && ok SSL_CERT_DIR || bad "SSL_CERT_DIR: $(head -c 200 err)"
{ echo '# our CA'; awk '/BEGIN CERT/{n++} n<3' /etc/ssl/certs/ca-certificates.crt 2>/dev/null; echo; echo '# Internal root (2026)';  sed 's/$/\r/' ca.pem; } > bundle.pem; go SSL_CERT_FILE=$PWD/bundle.pem; grep -q over-tls out && ok "bundle with CR LF and comments" || bad "bundle: $(head -c 200 err)"
go SSL_CERT_FILE=/nonexistent/ca.pem; grep -q panicked err && bad "missing file: panic" || ok "missing file: rc $rc $(head -c 160 err | tr '\n' ' ')"
openssl x509 -in ca.pem -outform DER -out ca.der; go SSL_CERT_FILE=$PWD/ca.der; echo "  note: DER: rc $rc $(head -c 160 err | tr '\n' ' ')"
verdict
