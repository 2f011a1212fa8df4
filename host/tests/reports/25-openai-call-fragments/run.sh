#!/usr/bin/env bash
# Source: huggingface/smolagents#1958, LibreChat-AI/agents#260, google-deepmind/amplio#3, oracle/langchain-oracle#254. Kind: parallel calls that share an
# index, fragments that carry no id and belong to the last call, an id that comes again. Hard. No call may be merged, lost or doubled.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"
try() { rm -f "$T/port" "$T/requests.jsonl"; start_mock script.json; OPENAI_BASE_URL=$MOCK_URL/v1 timeout 60 "$JAATO" run --model openai/m --yes "go" > out 2>err
 python3 - "$1" "$2" <<'PY' && ok "$1" || bad "$1: $(cat r | cut -c1-300)"
import json,os,sys
T=os.path.dirname(os.environ["HOME"]); reqs=[json.loads(l)["body"] for l in open(T+"/requests.jsonl")]; reqs=[r for r in reqs if isinstance(r,dict) and "messages" in r]
a=[m for m in reqs[-1]["messages"] if m["role"]=="assistant" and m.get("tool_calls")]
got=[json.loads(c["function"]["arguments"]).get("command") if c["function"]["arguments"].startswith("{") else c["function"]["arguments"] for c in (a[-1]["tool_calls"] if a else [])]
ids=[c["id"] for c in (a[-1]["tool_calls"] if a else [])]; res=[m["tool_call_id"] for m in reqs[-1]["messages"] if m["role"]=="tool"]
open("r","w").write(json.dumps([got,ids,res]))
sys.exit(0 if got==json.loads(sys.argv[2]) and len(set(ids))==len(ids) and sorted(ids)==sorted(res) else 1)
PY
}
N=cli_based_tool
g() { python3 -c "from chat import *; N='cli_based_tool'; json.dump([$1,oatext('end')],open('script.json','w'))"; }
g "oa(tc(0,'a',N,'{\"command\":'),tc(0,None,None,'\"echo 1\"}'),tc(0,'b',N,'{\"command\":'),tc(0,None,None,'\"echo 2\"}'),finish='tool_calls')"; try "same index, fragments without id behind each" '["echo 1","echo 2"]'
g "oa(tc(0,'a',N,''),tc(0,'b',N,''),tc(0,'a',None,'{\"command\":\"echo 1\"}'),tc(0,'b',None,'{\"command\":\"echo 2\"}'),finish='tool_calls')"; try "same index, fragments told apart by id" '["echo 1","echo 2"]'
g "oa(tc(0,'a',N,'{\"command\":\"ec'),tc(1,'b',N,'{\"command\":\"ec'),tc(0,None,None,'ho 1\"}'),tc(1,None,None,'ho 2\"}'),finish='tool_calls')"; try "interleaved by index" '["echo 1","echo 2"]'
g "oa(tc(0,'a',N,'{\"command\":'),tc(0,'a',N,'\"echo 1\"}'),finish='tool_calls')"; try "id and name again in each fragment" '["echo 1"]'
g "oa(tc(0,'a',N,'{\"command\":'),tc(0,'',N,'\"echo 1\"}'),finish='tool_calls')"; try "empty id in later fragments" '["echo 1"]'
g "oa(tc(0,'a',N,'{\"command\":'),tc(0,'a',None,'\"echo 1\"}'),tc(0,'a',None,''),finish='stop')"; try "finish says stop" '["echo 1"]'
g "oa(tc(1,'a',N,'{\"command\":\"echo 1\"}'),tc(2,'b',N,'{\"command\":\"echo 2\"}'),finish='tool_calls')"; try "numbers begin at 1" '["echo 1","echo 2"]'
g "oa(tc(0,'a',N,'{\"command\":\"echo 1\"}'),tc(0,'a',N,'{\"command\":\"echo 2\"}'),finish='tool_calls')"; try "two whole calls with one id and one index" '["echo 1","echo 2"]'
g "oa({'tool_calls':[{'id':'a','type':'function','function':{'name':N,'arguments':'{\"command\":\"echo 1\"}'}},{'id':'b','type':'function','function':{'name':N,'arguments':'{\"command\":\"echo 2\"}'}}]},finish='tool_calls')"; try "no index, two in one list" '["echo 1","echo 2"]'
g "oa(tc(0,'a','cli_','{\"comm'),tc(0,None,'based_tool','and\":\"echo 1\"}'),finish='tool_calls')"; try "the name in pieces" '["echo 1"]'
verdict
