#!/usr/bin/env bash
# Source: earendil-works/pi#713 and #3554, anomalyco/opencode#39258, openai/codex#625, NousResearch/hermes-agent#56375. Kind: the model's text
# differs from the file's in trailing blanks, no-break spaces, curly quotes, dashes. Peers apply such an edit (and change nothing else);
# the least is an error that shows the model the difference.
. "$(dirname "$0")/../lib/lib.sh"
try() { # name file-text old new
  printf "$2" > f.txt; cp f.txt b.txt
  if call updateFile "$(python3 -c "import json,sys;print(json.dumps({'path':'f.txt','old':sys.argv[1].encode().decode('unicode_escape').encode('latin-1').decode('utf-8') if 0 else sys.argv[1],'new':sys.argv[2]}))" "$3" "$4")" >/dev/null; then ok "$1: applied"; else
    if grep -q "$5" $T/err; then echo "  told only: $1: $(tr '\n' ' ' < $T/err | head -c 260)"; TOLD="$TOLD $1"; else bad "$1: not applied, and the error does not show why: $(tr '\n' ' ' < $T/err | head -c 260)"; fi; fi; }
TOLD=""
try trailing-blanks 'fn a() {  \n    x();\n}\n' $'fn a() {\n    x();' $'fn a() {\n    y();' 'blanks'
try nbsp 'let\xc2\xa0total = 10\xe2\x80\xafkm;\nnext\n' 'let total = 10 km;' 'let total = 11 km;' 'no-break\|U+00A0\|<U+\|blanks'
try quotes 'say(\xe2\x80\x9chello\xe2\x80\x9d);\n' 'say("hello");' 'say("bye");' '“hello”'
try dash 'Range: 1\xe2\x80\x9310 \xe2\x80\x94 ok\n' 'Range: 1-10 - ok' 'Range: 1-12 - ok' '–'
try nfd 'name = "cafe\xcc\x81"\n' $'name = "caf\xc3\xa9"' $'name = "th\xc3\xa9"' 'U+0301\|normal\|NFC\|NFD\|combin\|<U+'
try tabs 'if x:\n\treturn 1\n' $'if x:\n    return 1' $'if x:\n    return 2' 'blanks'
[ -n "$TOLD" ] && bad "peers apply, jaato only tells:$TOLD"
verdict
