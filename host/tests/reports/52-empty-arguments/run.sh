#!/usr/bin/env bash
# Source: yologdev/yoagent#153, getomnico/omni#402, BerriAI/litellm#5063, openai/openai-agents-js#664, deepset-ai/haystack-core-integrations#1947. Kind: a call without arguments: no fragment at all, an empty one, blanks, "null", "{}" twice, input that comes whole with the start; at each protocol.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"
run() { rm -f $T/port $T/requests.jsonl; start_mock s.json; ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=$MOCK_URL GEMINI_API_KEY=k GOOGLE_GEMINI_BASE_URL=$MOCK_URL OPENAI_BASE_URL=$MOCK_URL/v1 timeout 30 "$JAATO" run --model $1 --yes go > out 2>err; python3 - <<'PY' > r
import json,os
T=os.path.dirname(os.environ["HOME"]); l=[json.loads(x)["body"] for x in open(T+"/requests.jsonl")]; s=json.dumps(l[-1]) if len(l)>1 else "one request only"
print("good" if "linux" in s.lower() and "invalid_arguments" not in s else "bad", s[-300:])
PY
grep -q ^good r && ok "$2" || bad "$2: $(cut -c1-260 r) $(head -c 100 err)"; }
N=get_environment
for c in "tc(0,'a','$N')" "tc(0,'a','$N','')" "tc(0,'a','$N',' ')" "tc(0,'a','$N','null')" "tc(0,'a','$N','{}')"; do python3 -c "from chat import *; json.dump([oa($c,finish='tool_calls'),oatext('end')],open('s.json','w'))"; run openai/m "chat: $c"; done
for d in "[]" "[{'type':'input_json_delta','partial_json':''}]" "[{'type':'input_json_delta','partial_json':''},{'type':'input_json_delta','partial_json':'{}'}]"; do python3 -c "from chat import *; json.dump([an([({'type':'tool_use','id':'toolu_1','name':'$N','input':{}},$d)],'tool_use'),antext('end')],open('s.json','w'))"; run anthropic/claude-opus-4-5 "messages: $d"; done
python3 -c "from chat import *; json.dump([an([({'type':'tool_use','id':'toolu_1','name':'$N','input':{'aspect':'os'}},[])],'tool_use'),antext('end')],open('s.json','w'))"; run anthropic/claude-opus-4-5 "messages: input whole with the start"
g() { python3 -c "
import json; G=lambda p: {'sse':[{'candidates':[{'content':{'role':'model','parts':p},'finishReason':'STOP','index':0}],'usageMetadata':{'promptTokenCount':3,'candidatesTokenCount':3,'totalTokenCount':6}}]}
json.dump([G([$1]),G([{'text':'end'}])],open('s.json','w'))"; }
g "{'functionCall':{'name':'$N'}}"; run google/gemini-2.5-flash "gemini: no args"; g "{'functionCall':{'name':'$N','args':None}}"; run google/gemini-2.5-flash "gemini: args null"; g "{'functionCall':{'name':'$N','args':{}}}"; run google/gemini-2.5-flash "gemini: args {}"
verdict
