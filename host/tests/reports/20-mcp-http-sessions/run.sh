#!/usr/bin/env bash
# Source: modelcontextprotocol/rust-sdk#733, python-sdk#1676 and #1004/#1727, DAWNCR0W/affine-mcp-server#301, rekog-labs/MCP-Nest#106,
# actionhero/keryx#503, markmhendrickson/neotoma#1923. Kind: a session that the server forgot: told by 404 (the rule), by 400 with the SDK's words (many
# servers), 503, or an error in a 200. Hard. The call is made again in a new session, once; with other words at least the next call works.
. "$(dirname "$0")/../lib/lib.sh"
three() { printf '%s\n' '{"tool":"mcp__srv__hello","args":{}}' '{"tool":"mcp__srv__hello","args":{}}' '{"tool":"mcp__srv__hello","args":{}}' > b; while read -r l; do echo "$l"; sleep 0.4; done < b | timeout 90 "$JAATO" call --batch > o.jsonl 2>$T/err; n=$(grep -c called- o.jsonl); }
for m in ok404 ok404plain ok400 ok400id ok400plain ok410 ok503 ok200err; do rm -rf "$HOME/.cache" "$HOME/.local"; mcp_http --mode $m --forget-after 1; mcp_ready; three
  [ $n = 3 ] && ok "$m: 3 of 3 calls" || { if [ $n -ge 2 ]; then echo "  note: $m: $n of 3: $(grep -v called- o.jsonl | cut -c1-160 | head -1)"; else bad "$m: $n of 3 calls, it never logs in again: $(grep -v called- o.jsonl | cut -c1-200 | head -1) [$(tail -4 $T/http.log | tr '\n' ';')]"; fi; }
done
verdict
