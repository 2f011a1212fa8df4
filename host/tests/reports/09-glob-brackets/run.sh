#!/usr/bin/env bash
# Source: google-gemini/gemini-cli#5086, Aider-AI/aider#5530, cortexkit/aft#132, tailcallhq/forgecode#2917. Kind: paths with [ ] ( ) { } taken as
# patterns.
. "$(dirname "$0")/../lib/lib.sh"
for d in 'app/[id]' 'app/(group)/[...slug]' 'app/{x}'; do mkdir -p "$d"; echo 'needle = 1' > "$d/page.tsx"; done
for p in 'app/[id]/page.tsx' 'app/(group)/[...slug]/page.tsx' 'app/{x}/page.tsx'; do
  call readFile "{\"path\":\"$p\"}" | grep -q needle && ok "read $p" || bad "read $p"
  call updateFile "{\"path\":\"$p\",\"old\":\"needle = 1\",\"new\":\"needle = 2\"}" >/dev/null && ok "edit $p" || bad "edit $p: $(head -1 $T/err)"
  call glob_files "{\"pattern\":\"$p\"}" > g.json; grep -q '"total": 1' g.json && ok "glob $p" || bad "glob of the literal path finds nothing: $p: $(tr -d '\n' < g.json | head -c 160)"
  call grep_content "{\"pattern\":\"needle\",\"file_glob\":\"$p\"}" > g.json; grep -q '"total_matches": 1' g.json && ok "grep $p" || bad "grep with file_glob of the literal path finds nothing: $p: $(tr -d '\n' < g.json | head -c 200)"
  call grep_content "{\"pattern\":\"needle\",\"path\":\"$p\"}" | grep -q '"total_matches": 1' && ok "grep path $p" || bad "grep path $p"
done
verdict
