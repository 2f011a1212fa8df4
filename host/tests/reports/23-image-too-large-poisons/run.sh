#!/usr/bin/env bash
# Source: anthropics/claude-code#29551, #34120, #16173, #52874. Kind: an image that the vendor refuses (a side of more than 8000 or 2000 pixels, more than
# 5 MB) stays in the history, and every later message fails: the conversation is dead. Hard. Wanted: it never goes out, or the next message works.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"
python3 - <<'PY'
import zlib,struct
def png(w,h):
    c=lambda t,d: struct.pack(">I",len(d))+t+d+struct.pack(">I",zlib.crc32(t+d))
    return b"\x89PNG\r\n\x1a\n"+c(b"IHDR",struct.pack(">IIBBBBB",w,h,8,2,0,0,0))+c(b"IDAT",zlib.compress((b"\0"+b"\x7f"*(3*w))*h))+c(b"IEND",b"")
open("wide.png","wb").write(png(9001,20)); open("ok.png","wb").write(png(20,20))
from chat import *
no={"status":400,"json":{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}}
json.dump([no,antext("second-fine")],open("s.json","w"))
PY
# a server that refuses any request with an image wider than 8000
cat > strict.py <<'PY'
import json,sys,base64,struct
from http.server import *
ok=lambda: open(sys.argv[2]).read()
class H(BaseHTTPRequestHandler):
    def log_message(self,*x): pass
    def do_GET(self): self.send_response(404); self.end_headers()
    def do_POST(self):
        b=json.loads(self.rfile.read(int(self.headers["content-length"]))); wide=[]
        def f(x):
            if isinstance(x,dict):
                if x.get("type")=="image" and x["source"].get("data"):
                    d=base64.b64decode(x["source"]["data"]); w,h=struct.unpack(">II",d[16:24]); wide.append(max(w,h))
                [f(v) for v in x.values()]
            elif isinstance(x,list): [f(v) for v in x]
        f(b.get("messages")); open(sys.argv[3],"a").write(json.dumps({"n":len(b.get("messages",[])),"images":wide})+"\n")
        if any(w>8000 for w in wide):
            r=json.dumps({"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}).encode()
            self.send_response(400); self.send_header("content-type","application/json"); self.send_header("content-length",str(len(r))); self.end_headers(); self.wfile.write(r); return
        ev=json.loads(ok()); self.send_response(200); self.send_header("content-type","text/event-stream"); self.end_headers()
        for e in ev["sse"]: self.wfile.write(f"event: {e['event']}\ndata: {json.dumps(e['data'])}\n\n".encode())
s=ThreadingHTTPServer(("127.0.0.1",0),H); open(sys.argv[1],"w").write(str(s.server_port)); s.serve_forever()
PY
python3 -c "from chat import *; json.dump(antext('fine-answer'),open('ok.json','w'))"
python3 strict.py "$T/sport" ok.json "$T/seen" & PIDS="$PIDS $!"; for _ in $(seq 100); do [ -s $T/sport ] && break; sleep 0.05; done
export ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat $T/sport)
# Attached by a person at the first message, then a second message.
printf 'look at @wide.png\nand now without it\n' | timeout 90 "$JAATO" chat --model anthropic/claude-opus-4-5 > out 2>err; 
echo "  requests: $(tr '\n' ' ' < $T/seen)"
[ "$(grep -c fine-answer out)" -ge 1 ] && ok "the second message works" || bad "after one image that the server refuses every message fails: $(grep -i error err | tail -2 | tr '\n' ' ' | cut -c1-300)"
rm -f $T/seen; cp wide.png shot.png
python3 - <<'PY'
from chat import *
PY
verdict
