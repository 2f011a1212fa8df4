#!/usr/bin/env bash
# Source: tailcallhq/forgecode#2917 (brackets in a path); else no single report. Kind: working in a folder whose name has blanks, quotes, $, a line end, bytes that
# are not UTF-8, CJK, a leading dash, or that was removed.
. "$(dirname "$0")/../lib/lib.sh"
for d in "with blank" "q'u\"ote" '$HOME' $'line\nend' $'zo\xe8' '日本語' '-dash' 'a:b' '%41' 'back\slash' 'star*'; do mkdir -p "./$d"; ( cd "./$d"; echo one > f.txt
  timeout 30 "$JAATO" call updateFile '{"path":"f.txt","old":"one","new":"two"}' >o 2>e && grep -q two f.txt && timeout 30 "$JAATO" call cli_based_tool '{"command":"cat f.txt"}' 2>>e | grep -q two && timeout 30 "$JAATO" call grep_content '{"pattern":"two"}' 2>>e | grep -q f.txt ) && ok "$(printf '%q' "$d")" || grep -q "is not UTF-8: rename it" "./$d/e" && ok "$(printf '%q' "$d"): told" || bad "$(printf '%q' "$d"): $(head -c 200 "./$d/e" | tr '\n' ' ')"; done
mkdir gone; cd gone; rmdir ../gone; timeout 30 "$JAATO" call cli_based_tool '{"command":"echo hi"}' > "$T/o" 2> "$T/e"; rc=$?; grep -q panicked "$T/e" && bad "removed folder: panic" || ok "removed folder: rc $rc $(head -1 "$T/e" | cut -c1-150)"; cd ..
verdict
