#!/usr/bin/env bash
# Source: nota/gyazo-mcp-server#129 (data URL), modelcontextprotocol/inspector#435 and python-sdk#342 (URL-safe), cyanheads/toolkit-mcp-server#32
# (line breaks), llmsresearch/paperbanana#58 (png that is jpeg). Kind: images whose base64 is lined, URL-safe, unpadded, a data URL, or of another
# media type than said. An image must reach the model, or be refused aloud; never with a wrong media type, which stops a conversation at Anthropic.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import json,base64,zlib,struct,textwrap
def png(w,h):
    c=lambda t,d: struct.pack(">I",len(d))+t+d+struct.pack(">I",zlib.crc32(t+d))
    raw=b"".join(b"\0"+bytes((i*7+j*13)%256 for j in range(3*w)) for i in range(h))
    return b"\x89PNG\r\n\x1a\n"+c(b"IHDR",struct.pack(">IIBBBBB",w,h,8,2,0,0,0))+c(b"IDAT",zlib.compress(raw))+c(b"IEND",b"")
p=png(20,20); b=base64.b64encode(p).decode(); jpeg=b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"+b"\xff\xd9"
I=lambda d,m="image/png":{"content":[{"type":"image","mimeType":m,"data":d}]}
calls={"plain":I(b),"lines":I("\n".join(textwrap.wrap(b,76))+"\n"),"crlf":I("\r\n".join(textwrap.wrap(b,76))),"dataurl":I("data:image/png;base64,"+b),"urlsafe":I(base64.urlsafe_b64encode(p).decode()),"nopad":I(b.rstrip("=")),"mislabel":I(base64.b64encode(jpeg).decode(),"image/png"),"mislabel2":I(b,"image/jpeg"),"nomime":{"content":[{"type":"image","data":b}]},"jpg":I(base64.b64encode(jpeg).decode(),"image/jpg"),"empty":I("")}
json.dump({"tools":[{"name":n,"inputSchema":{"type":"object"}} for n in calls],"calls":calls},open("spec.json","w"))
PY
mcp_home "$PWD/spec.json"; mcp_ready; mkdir -p "$HOME/.config/jaato"
ask() { # tool -> what a model of Anthropic is sent
  python3 - "$1" <<'PY' > script.json
import json,sys
def msg(blocks,stop):
    ev=[{"event":"message_start","data":{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}}]
    for i,(start,deltas) in enumerate(blocks):
        ev.append({"event":"content_block_start","data":{"type":"content_block_start","index":i,"content_block":start}})
        for d in deltas: ev.append({"event":"content_block_delta","data":{"type":"content_block_delta","index":i,"delta":d}})
        ev.append({"event":"content_block_stop","data":{"type":"content_block_stop","index":i}})
    ev.append({"event":"message_delta","data":{"type":"message_delta","delta":{"stop_reason":stop},"usage":{"output_tokens":5}}}); ev.append({"event":"message_stop","data":{"type":"message_stop"}})
    return {"sse":ev}
print(json.dumps([msg([({"type":"tool_use","id":"toolu_1","name":"mcp__srv__"+sys.argv[1],"input":{}},[{"type":"input_json_delta","partial_json":"{}"}])],"tool_use"),msg([({"type":"text","text":""},[{"type":"text_delta","text":"done"}])],"end_turn")]))
PY
  rm -f "$T/requests.jsonl" "$T/port"; start_mock script.json
  ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=$MOCK_URL timeout 60 "$JAATO" run --model anthropic/claude-opus-4-5 --yes --tools 'mcp__srv__*' "go" > out 2>$T/err
  python3 - "$1" <<'PY' > seen
import json,os,base64
T=os.path.dirname(os.environ["HOME"])
reqs=[json.loads(l) for l in open(T+"/requests.jsonl")] if os.path.exists(T+"/requests.jsonl") else []
reqs=[r for r in reqs if r["path"].startswith("/v1/messages") and "count" not in r["path"]]
if not reqs: print("no request"); raise SystemExit
def find(x):
    if isinstance(x,dict):
        if x.get("type")=="image": yield x
        for v in x.values(): yield from find(v)
    elif isinstance(x,list):
        for v in x: yield from find(v)
im=list(find(reqs[-1]["body"]["messages"]))
def real(b): return "image/png" if b[:4]==b"\x89PNG" else "image/jpeg" if b[:2]==b"\xff\xd8" else "?"
txt=json.dumps(reqs[-1]["body"]["messages"][-1])[60:520]
print(len(reqs),[ (i["source"]["media_type"], real(base64.b64decode(i["source"]["data"]))) for i in im], "" if im else txt)
PY
}
for t in plain lines crlf dataurl urlsafe nopad nomime; do ask $t; grep -q "image/png', 'image/png" seen && ok "$t reaches the model" || bad "$t does not reach the model: $(head -c 330 seen) $(head -c 100 $T/err)"; done
for t in mislabel mislabel2 jpg; do ask $t; if grep -q "image/" seen && ! grep -q "('image/png', 'image/png')\|('image/jpeg', 'image/jpeg')\|media\|\[\]" seen; then bad "$t is sent with a wrong media type: $(head -c 200 seen)"; else ok "$t: $(head -c 460 seen)"; fi; done
ask empty; ok "empty: $(head -c 200 seen)"
verdict
