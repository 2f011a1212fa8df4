#!/usr/bin/env bash
# Source: spring-projects/spring-ai#5888, github/copilot-cli#1876, Softeria/ms-365-mcp-server#576, open-webui/computer#87. Kind: $ref to $defs, nested
# root-relative refs, recursion, null types, draft 4, odd or missing schemas. Every tool is offered with a schema that has no dangling $ref, and
# arguments that the server takes pass. Hard.
. "$(dirname "$0")/../lib/lib.sh"
python3 - <<'PY'
import json
o={"type":"object"}
S={
 "defs":{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"required":["q"],"$defs":{"Q":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"},"default":None},"n":{"type":"integer","default":20}}}}},
 "recursive":{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"}},"required":["root"],"$defs":{"Node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["name"],"additionalProperties":False}}},
 "rootref":{"type":"object","properties":{"role":{"type":"object","properties":{"for":{"$ref":"#/properties/role/$defs/P"}},"$defs":{"P":{"type":"string"}}}}},
 "dangling":{"type":"object","properties":{"x":{"$ref":"#/$defs/Gone"},"y":{"$ref":"https://example.invalid/s.json"}}},
 "selfroot":{"type":"object","properties":{"again":{"$ref":"#"},"v":{"type":"string"}}},
 "nulls":{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":None},"c":{"enum":["x",None]},"d":{"type":"null"}},"required":None},
 "draft4":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":True},"u":{"type":"any"}}},
 "noprops":{"type":"object","properties":None},
 "anyof":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]},
 "boolprop":{"type":"object","properties":{"any":True,"none":False}},
 "tuple":{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"number"}],"minItems":2}}},

 "lookahead":{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!x)(?<y>a)\\d+$"}}},
 "lookbehind":{"type":"object","properties":{"p":{"type":"string","pattern":"(?<=a)b"}}},
 "classdash":{"type":"object","properties":{"p":{"type":"string","pattern":"^[\\w-.]+@[\\w-]+$"}}},
 "slash":{"type":"object","properties":{"p":{"type":"string","pattern":"^https?:\\/\\/x$"}}},
 "brace":{"type":"object","properties":{"p":{"type":"string","pattern":"^{[a-z]+}$"}}},
 "uesc":{"type":"object","properties":{"p":{"type":"string","pattern":"^[\\u0041-\\u005A]+$"}}},
 "anyclass":{"type":"object","properties":{"p":{"type":"string","pattern":"^[^]*$"}}},
 "backref":{"type":"object","properties":{"p":{"type":"string","pattern":"^(a)\\1$"}}},
 "ctrl":{"type":"object","properties":{"p":{"type":"string","pattern":"^\\cM?x$"}}},
 "badpattern":{"type":"object","properties":{"q":{"type":"string","pattern":"["}}},
 "unesc":{"type":"object","properties":{"p":{"type":"string","pattern":"^[a-z\\-\\_]+\\@x$"}}},
 "format":{"type":"object","properties":{"f":{"type":"string","format":"uri"},"d":{"type":"string","format":"date-time"},"e":{"type":"string","format":"email"}}},
 "emptyenum":{"type":"object","properties":{"p":{"type":"string","enum":[]}}},
 "enumtyp":{"type":"object","properties":{"p":{"type":"integer","enum":["1","2"]}}},
 "reqtwice":{"type":"object","properties":{"p":{"type":"string"}},"required":["p","p"]},
 "reqlocal":{"type":"object","properties":{"p":{"type":"string","required":True}}},
 "nullable":{"type":"object","properties":{"p":{"type":"string","nullable":True}}},
 "minstr":{"type":"object","properties":{"p":{"type":"string","minLength":"1"},"n":{"type":"number","minimum":"0"}}},
 "depend":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependencies":{"a":["b"]}},
 "addfalse":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}},
 "typearr":{"type":["object"],"properties":{"a":{"type":"string"}}},
 "typeobjnull":{"type":["object","null"],"properties":{"a":{"type":"string"}}},
 "constobj":{"type":"object","properties":{"kind":{"const":"x"},"n":{"type":"number","multipleOf":0}}},
 "defaultbad":{"type":"object","properties":{"n":{"type":"integer","default":"none"}}},
 "examples":{"type":"object","properties":{"n":{"type":"integer","examples":3}}},
 "dotted":{"type":"object","properties":{"filter.name":{"type":"string"},"$top":{"type":"integer"},"ünï":{"type":"string"}}},
 "deep":None,
}
d={"type":"string"}
for i in range(40): d={"type":"object","properties":{"l":d}}
S["deep"]=d
tools=[{"name":k,"description":k,"inputSchema":v} for k,v in S.items()]
tools.append({"name":"missing","description":"no schema"}); tools.append({"name":"empty","inputSchema":{}}); pass
args={"defs":{"q":{"ids":["a"],"n":1}},"recursive":{"root":{"name":"a","children":[{"name":"b","children":[{"name":"c","children":[]}]}]}},"rootref":{"role":{"for":"x"}},"dangling":{"x":1,"y":2},"selfroot":{"again":{"again":{"v":"s"}}},"nulls":{"a":None,"b":None,"c":None,"d":None},"draft4":{"n":3,"u":[1]},"noprops":{},"anyof":{"b":"x"},"boolprop":{"any":1},"tuple":{"p":[1,2]},"lookahead":{"p":"a12"},"lookbehind":{"p":"ab"},"classdash":{"p":"a.b@c"},"slash":{"p":"https://x"},"brace":{"p":"{a}"},"uesc":{"p":"AB"},"anyclass":{"p":"z"},"backref":{"p":"aa"},"ctrl":{"p":"x"},"badpattern":{"q":"z"},"unesc":{"p":"a-b@x"},"format":{"f":"https://x","d":"2026-01-01T00:00:00Z","e":"a@b.c"},"emptyenum":{"p":"a"},"enumtyp":{"p":"1"},"reqtwice":{"p":"x"},"reqlocal":{"p":"x"},"nullable":{"p":None},"minstr":{"p":"x","n":1},"depend":{"a":"x","b":"y"},"addfalse":{"z":1},"typearr":{"a":"x"},"typeobjnull":{"a":"x"},"constobj":{"kind":"x","n":1},"defaultbad":{},"examples":{"n":1},"dotted":{"filter.name":"x"},"deep":{"l":{"l":{}}},"missing":{},"empty":{"k":1}}
json.dump({"tools":tools},open("spec.json","w")); json.dump(args,open("args.json","w"))
PY
mcp_home "$PWD/spec.json"; mcp_ready; offered
python3 - <<'PY' > r
import json,subprocess,os
J=os.environ["JAATO"]; args=json.load(open("args.json")); T=os.path.dirname(os.environ["HOME"]); l=json.load(open(T+"/offered.json"))
for k,a in args.items():
    n="mcp__srv__"+k
    if n not in l: print("BAD",k,"is not offered"); continue
    s=json.dumps(l[n])
    if '"$ref"' in s: print("BAD",k,"has a $ref")
    r=subprocess.run([J,"call",n,json.dumps(a)],capture_output=True,text=True,timeout=60)
    if "called" in r.stdout: print("ok",k)
    else: print("BAD",k,"refused:"," ".join(l for l in (r.stderr+r.stdout).split("\n") if not l.startswith("host:"))[:260], "schema:", json.dumps(l[n])[:200])
PY
cat r; grep -q ^BAD r && bad "$(grep ^BAD r | tr '\n' ' ' | head -c 600)"
verdict
