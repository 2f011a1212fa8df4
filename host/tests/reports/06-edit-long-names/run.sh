#!/usr/bin/env bash
# Source: npm/write-file-atomic#63, bmad-code-org/bmad-loop#595. Kind: a temporary file whose name is longer than the target's. Hard.
. "$(dirname "$0")/../lib/lib.sh"
for n in 200 243 251 255; do name=$(printf 'n%.0s' $(seq $((n-4)))).txt; echo one > "$name"
  call updateFile "{\"path\":\"$name\",\"old\":\"one\",\"new\":\"two\"}" >/dev/null && grep -q two "$name" && ok "$n bytes" || bad "$n bytes: $(head -c 160 $T/err)"; done
name=$(python3 -c "print('語'*83+'.txt')"); call writeNewFile "{\"path\":\"$name\",\"content\":\"one\"}" >/dev/null && [ -f "$name" ] && ok "253 bytes of CJK, new" || bad "new with 253 bytes: $(head -c 160 $T/err)"
call updateFile "{\"path\":\"$name\",\"old\":\"one\",\"new\":\"two\"}" >/dev/null && ok "253 bytes of CJK, edited" || bad "253 bytes of CJK: $(head -c 160 $T/err)"
call undoFileChange "{\"path\":\"$name\"}" >/dev/null && ok undone || bad "undo: $(head -c 160 $T/err)"
ls -A | grep -qv -e '^n' -e '^語' && bad "left behind: $(ls -A | grep -v -e '^n' -e '^語')"
verdict
