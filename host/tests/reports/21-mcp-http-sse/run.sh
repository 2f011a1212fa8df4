#!/usr/bin/env bash
# Source: no single report; the SDKs' code passes over other events (mcp 2.3.0, @modelcontextprotocol/sdk 1.32.2). Kind: event streams with CR LF, CR alone, a byte
# order mark, data in several lines, no blank behind the colon, empty events before, no blank line at the end; 200 for 202; GET refused by 404 or 405.
. "$(dirname "$0")/../lib/lib.sh"
for v in lf crlf cr bom comment ping pingtext heartbeat endpoint emptyobj priming lines nospace json; do rm -rf "$HOME/.cache" "$HOME/.local"; mcp_http --sse $v; mcp_ready; call mcp__srv__hello '{}' | grep -q called- && ok "$v" || bad "$v: $(head -c 160 $T/err | tr '\n' ' ')$(head -c 160 $T/connect | tr '\n' ' ')"; done
for v in empty200 get404; do rm -rf "$HOME/.cache" "$HOME/.local"; mcp_http --mode $v; mcp_ready; call mcp__srv__hello '{}' | grep -q called- && ok "$v" || bad "$v: $(head -c 160 $T/err | tr '\n' ' ')"; done
verdict
