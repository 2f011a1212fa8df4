#!/usr/bin/env bash
# Source: anthropics/claude-code#31290 (hard links), #28376 (links), OpenHands/software-agent-sdk#5096 (undo through a link). Kind: what an
# atomic rename breaks: hard links, links, modes, xattrs. Hard.
. "$(dirname "$0")/../lib/lib.sh"
echo 'enabled = false' > real; ln real hard; mkdir d; echo 'enabled = false' > d/target; ln -s d/target l1; ln -s l1 l2; chmod 750 d/target
call updateFile '{"path":"real","old":"false","new":"true"}' >/dev/null || echo "  note: refused: $(head -1 $T/err)"
[ "$(cat hard)" = "$(cat real)" ] && ok "hard link holds" || bad "a hard link was broken: real=$(cat real), its other name=$(cat hard), no word: $(head -c 100 $T/err)"
call updateFile '{"path":"l2","old":"false","new":"true"}' >/dev/null || bad "edit through two links refused: $(head -1 $T/err)"
[ -L l1 ] && [ -L l2 ] && grep -q true d/target && ok "links hold" || bad "links broken"
[ "$(stat -c %a d/target)" = 750 ] && ok "mode holds" || bad "mode is $(stat -c %a d/target)"
call undoFileChange '{"path":"l2"}' >/dev/null || bad "undo through a link refused: $(head -1 $T/err)"
[ -L l2 ] && grep -q false d/target && ok "undo through links" || bad "undo through a link: $(ls -l l2) $(cat d/target)"
verdict
