#!/usr/bin/env bash
# Source: marcusquinn/aidevops#427, spences10/ccrecall#23 and #29, Dicklesworthstone/mcp_agent_mail#67, ohdearquant/khive#880. Kind: tags and words that a full-text query takes for its own
# syntax: hyphens, quotes, slashes, operators, other scripts.
. "$(dirname "$0")/../lib/lib.sh"
i=0; for t in pre-edit POL-358 'GB/s' "don't" 'c++' 'C#' 'a:b' '"quoted"' 'AND' 'NEAR(x)' 'x*' '^y' '日本語' 'größe' '100%' "a'); DROP TABLE memories;--" 'under_score'; do i=$((i+1))
 j=$(python3 -c "import json,sys;print(json.dumps({'content':'fact $i','description':'about '+sys.argv[1],'tags':[sys.argv[1]]}))" "$t"); call store_memory "$j" >/dev/null || { bad "store $t: $(head -c 150 $T/err)"; continue; }
 q=$(python3 -c "import json,sys;print(json.dumps({'tags':[sys.argv[1]]}))" "$t"); call retrieve_memories "$q" > o; grep -q "fact $i\"" o && ok "$t" || bad "$t is not found: $(tr -d '\n' < o | head -c 150)$(head -c 150 $T/err)"; done
verdict
