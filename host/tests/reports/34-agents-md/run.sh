#!/usr/bin/env bash
# Source: openai/codex#23232 (no UTF-8), anthropics/claude-code#73158 (BOM), maddada/Ghostex#139 (too long, cut silently), damianvtran/local-operator#829. Kind:
# AGENTS.md with a BOM, CR LF, a byte that is not UTF-8, UTF-16, 300 KB, a link, imports. It is read, or one line says why not.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"; python3 -c "from chat import *; json.dump([oatext('fine')],open('script.json','w'))"; start_mock script.json
try() { : > $T/requests.jsonl; "$JAATO" trust >trust.out 2>&1; OPENAI_BASE_URL=$MOCK_URL/v1 timeout 30 "$JAATO" run --model openai/m "go" > out 2>err </dev/null; rc=$?
 python3 - "$2" <<'PY' > got
import json,os,sys
T=os.path.dirname(os.environ["HOME"]); b=[json.loads(l)["body"] for l in open(T+"/requests.jsonl")]; b=[x for x in b if isinstance(x,dict) and "messages" in x]
s=json.dumps(b[-1]["messages"],ensure_ascii=False) if b else ""
print("yes" if sys.argv[1] in s else "no", "bom" if "\ufeff" in s else "", len(s))
PY
 if grep -q ^yes got; then ok "$1: read $(cat got) $(grep -i agents err | head -c 150)"; elif grep -qi 'AGENTS\|CLAUDE\|utf' err; then ok "$1: told: $(cat err | grep -i 'agents\|claude\|utf' | head -3 | tr '\n' ' ' | cut -c1-300)"; else bad "$1: neither read nor told: rc $rc $(head -c 200 err)"; fi; }
printf '\xef\xbb\xbf# Rules\nMARK-bom\n' > AGENTS.md; try bom MARK-bom
printf '# Rules\r\nMARK-crlf\r\n' > AGENTS.md; try crlf MARK-crlf
printf '# Rules caf\xe9\nMARK-latin\n' > AGENTS.md; try "a byte that is not UTF-8" MARK-latin
python3 -c "open('AGENTS.md','wb').write(b'\xff\xfe'+'# Rules\nMARK-16\n'.encode('utf-16-le'))"; try utf-16 MARK-16; python3 -c "
import json; l=[json.loads(x)['body'] for x in open('$T/requests.jsonl')]; s=json.dumps(l[-1].get('messages')); print('  utf-16: the model is sent', s[s.find('ufffd')-3:][:60] if 'u0000' in s else 'no NUL')"
python3 -c "open('AGENTS.md','w').write('# Rules\n'+'filler line here\n'*20000+'MARK-end\n')"; try "340 KB" MARK-end
python3 -c "open('AGENTS.md','w').write('# Rules\n'+'filler line here\n'*2400+'MARK-mid\n')"; try "40 KB" MARK-mid
printf '# Rules caf\xe9\nMARK-latin2\n' > AGENTS.md; try "a byte that is not UTF-8, again" MARK-latin2; grep -qi 'utf\|AGENTS' err && ok "a notice names it" || bad "a byte that is not UTF-8 is replaced without a notice (codex#23232)"
rm AGENTS.md; printf '# Rules\nMARK-link\n' > CLAUDE.md; ln -s CLAUDE.md AGENTS.md; try "AGENTS.md -> CLAUDE.md" MARK-link
rm -f AGENTS.md CLAUDE.md; mkdir docs; echo 'MARK-import' > docs/rules.md; printf 'See @docs/rules.md\n@AGENTS.md\n' > AGENTS.md; F=$FAILS; try "import" MARK-import; [ "$F" = "$FAILS" ] || echo "  note: @imports are not followed (not promised)"; FAILS=$F
verdict
