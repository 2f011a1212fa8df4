#!/usr/bin/env bash
# Source: NousResearch/hermes-agent#59465 (CIDR), wecode-ai/Wegent#3556, curl/curl#9773, nahi/httpclient#301. Kind: proxies: the address without a scheme, with a name and a password, in lower case, with a slash at the end; NO_PROXY as *, a domain, an address, a CIDR block, with a port; nonsense. Hard.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"
cat > proxy.py <<'PY'
import sys,json; from http.server import *; from chat import *
class H(BaseHTTPRequestHandler):
    protocol_version="HTTP/1.1"
    def log_message(self,*x): pass
    def do_GET(self): self.send_response(404); self.send_header("content-length","0"); self.end_headers()
    def do_CONNECT(self): open(sys.argv[2],"a").write("CONNECT "+self.path+"\n"); self.send_response(403); self.send_header("content-length","0"); self.end_headers()
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0)); open(sys.argv[2],"a").write(self.path+" "+str(self.headers.get("proxy-authorization"))+"\n")
        r=b"".join((x if isinstance(x,str) else f"data: {json.dumps(x)}\n\n").encode() for x in oatext("via-proxy")["sse"]); self.send_response(200); self.send_header("content-type","text/event-stream"); self.send_header("content-length",str(len(r))); self.end_headers(); self.wfile.write(r)
s=ThreadingHTTPServer(("127.0.0.1",0),H); open(sys.argv[1],"w").write(str(s.server_port)); s.serve_forever()
PY
python3 proxy.py $T/pp $T/plog & PIDS="$PIDS $!"; for _ in $(seq 100); do [ -s $T/pp ] && break; sleep 0.05; done; P=127.0.0.1:$(cat $T/pp)
OWN=$(hostname -I 2>/dev/null | awk '{print $1}') # this machine's own address: nothing leaves it
go() { : > $T/plog; env JAATO_SESSION_ATTEMPTS_MAX=1 OPENAI_BASE_URL=http://${HOST:-nohost.invalid}:8123/v1 "$@" timeout 12 "$JAATO" run --model openai/m go > out 2>err; rc=$?; }
yes() { n=$1; shift; go "$@"; grep -q via-proxy out && ok "$n" || bad "$n: not by the proxy: rc $rc $(head -c 160 err | tr '\n' ' ')"; }
no() { n=$1; shift; go "$@"; [ -s $T/plog ] && bad "$n: went to the proxy" || ok "$n: past the proxy"; }
yes "with scheme" HTTP_PROXY=http://$P
yes "lower case" http_proxy=http://$P
yes "without scheme" HTTP_PROXY=$P
yes "slash at the end" HTTP_PROXY=http://$P/
yes "ALL_PROXY" ALL_PROXY=http://$P
yes "name and password" HTTP_PROXY=http://u%40d:p%2Fw@$P; grep -q 'Basic dUBkOnAvdw==' $T/plog && ok "the password is decoded" || bad "the password is not decoded: $(cat $T/plog)"
yes "NO_PROXY of others" HTTP_PROXY=http://$P NO_PROXY=example.org,10.1.0.0/16,localhost
no "NO_PROXY=* and a name" HTTP_PROXY=http://$P NO_PROXY='*'
no "NO_PROXY .domain" HTTP_PROXY=http://$P NO_PROXY='a.b, .invalid'
if [ -n "$OWN" ]; then HOST=$OWN
no "NO_PROXY=* and an address" HTTP_PROXY=http://$P NO_PROXY='*'
no "NO_PROXY address" HTTP_PROXY=http://$P NO_PROXY="a.b, $OWN"
no "NO_PROXY block" HTTP_PROXY=http://$P no_proxy=${OWN%%.*}.0.0.0/8
HOST=nohost.invalid; fi
go HTTP_PROXY='http://bad host:x'; grep -q panicked err && bad "nonsense: panic" || ok "nonsense: rc $rc $(head -c 130 err | tr '\n' ' ')"
verdict
