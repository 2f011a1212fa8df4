#!/usr/bin/env bash
# Source: DAWNCR0W/affine-mcp-server#301 and modelcontextprotocol/python-sdk#1727 (bodies with id null), markmhendrickson/neotoma#1923. Kind: a call that is refused by a status of 4xx or 5xx with a JSON-RPC error whose id is null, as the
# SDKs send it: the words must come at once, not a time-out. Hard.
. "$(dirname "$0")/../lib/lib.sh"
for m in err400null err500null err200null err422 err413 err429; do rm -rf "$HOME/.cache" "$HOME/.local"; mcp_http --mode $m; mcp_ready; s=$(date +%s%N); call mcp__srv__hello '{}' > o; e=$((($(date +%s%N)-s)/1000000)); w=$(grep -v '^host' $T/err | head -2 | tr '\n' ' ' | cut -c1-200)
 [ $e -lt 6000 ] && ok "$m: $e ms" || bad "$m: the answer is there at once, the call waits for its whole time limit ($e ms): $w"
 grep -q "the-servers-own-words" $T/err o && ok "$m: says why" || bad "$m: the server's words are lost: $w"; done
verdict
