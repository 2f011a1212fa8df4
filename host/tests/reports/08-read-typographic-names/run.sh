#!/usr/bin/env bash
# Source: anomalyco/opencode#22574, anthropics/claude-code#59381, cline/cline#10691, earendil-works/pi#181. Kind: file names that a model or a
# person writes with an ordinary space or as NFC, and that are on the disk with U+202F, U+00A0 or as NFD. Found, or at least named.
. "$(dirname "$0")/../lib/lib.sh"
a=$'Shot 2026-01-02 at 9.41.07\xe2\x80\xafAM.txt'; b=$'Sn\xc3\xadmek v\xc2\xa013.05.txt'; c=$'re\xcc\x81sume\xcc\x81.txt'
echo narrow > "$a"; echo nbsp > "$b"; echo nfd > "$c"
try() { if call readFile "{\"path\":\"$1\"}" > o.json; then grep -q "$2" o.json && ok "$3: read"; else grep -qi "nearest\|mean\|similar\|there is" $T/err && echo "  named: $(tr '\n' ' ' < $T/err | head -c 300)" || bad "$3: $(tr '\n' ' ' < $T/err | head -c 200)"; fi; }
try 'Shot 2026-01-02 at 9.41.07 AM.txt' narrow U+202F
try $'Sn\xc3\xadmek v 13.05.txt' nbsp U+00A0
try $'r\xc3\xa9sum\xc3\xa9.txt' nfd NFD
verdict
