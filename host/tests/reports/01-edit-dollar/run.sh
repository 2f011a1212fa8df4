#!/usr/bin/env bash
# Source: anomalyco/opencode#45892, withastro/flue#506. Kind: replacement text with $&, $`, $', $$, $1 is taken as a pattern.
. "$(dirname "$0")/../lib/lib.sh"
printf 'head\nlog("done");\ntail\n' > a.js
call updateFile '{"path":"a.js","old":"log(\"done\");","new":"log(\"$& $` $'"'"' $$ $1 ${x} \\1\");"}' >/dev/null || bad "edit refused: $(cat $T/err)"
printf 'head\nlog("$& $` $'"'"' $$ $1 ${x} \\1");\ntail\n' > want.js
cmp -s a.js want.js && ok "written literally" || bad "not written literally: $(cat a.js)"
verdict
