#!/usr/bin/env bash
# Source: openclaw/openclaw#116011, dimitar-grigorov/mcp-file-tools#24. Kind: untouched lines lose CR LF or a lone CR.
. "$(dirname "$0")/../lib/lib.sh"
edit() { printf "$1" > f.txt; call updateFile "{\"path\":\"f.txt\",\"old\":\"$2\",\"new\":\"$3\"}" >/dev/null || bad "refused: $(head -1 $T/err)"
  printf "$4" > want; cmp -s f.txt want && ok "$1" || bad "$1 became $(od -c f.txt | head -3 | tr '\n' ' ')"; }
edit 'alpha\nbeta\r\ngamma\r\n' alpha ALPHA 'ALPHA\nbeta\r\ngamma\r\n'
edit 'alpha\r\nbeta\ngamma\n' gamma G 'alpha\r\nbeta\nG\n'
edit 'start\n10%%\r50%%\r100%%\ndone\n' done finished 'start\n10%%\r50%%\r100%%\nfinished\n'
edit 'id=1\rid=2\rid=3\nfooter\n' 'id=2' 'id=two' 'id=1\rid=two\rid=3\nfooter\n'
edit 'a\r\nb\r\nc' 'a\nb' 'x\ny\nz' 'x\r\ny\r\nz\r\nc'
verdict
