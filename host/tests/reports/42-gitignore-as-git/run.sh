#!/usr/bin/env bash
# Source: BurntSushi/ripgrep#2329, #1897, #3059, #778, #3263, esengine/DeepSeek-Reasonix#2660 (negation across files). Kind: which files git ignores and a search passes over must be
# the same: negation, anchors, nested files, blanks, CR LF, BOM, info/exclude, a root above the searched folder. Hard.
. "$(dirname "$0")/../lib/lib.sh"
export GIT_CONFIG_NOSYSTEM=1
n=0; try() { # name, then files are made by eval; compares with git
  name=$1; rm -rf repo; mkdir repo; cd repo; git init -q .; eval "$2"; at=${3:-.}
  (cd "$at" && git ls-files -co --exclude-standard | grep -v '\.gitignore$' | sort) > "$T/git"; (cd "$at" && call grep_content '{"pattern":"needle","include_hidden":true,"max_results":1000}' | python3 -c "import json,sys; print('\n'.join(sorted({m['file'] for m in json.load(sys.stdin)['matches']})))" | grep -v '\.gitignore$' | grep -v '^$' | sort) > "$T/our"
  cmp -s "$T/git" "$T/our" && ok "$name" || bad "$name: git has [$(tr '\n' ' ' < $T/git)], we have [$(tr '\n' ' ' < $T/our)]"; cd ..; }
f() { for p in "$@"; do mkdir -p "$(dirname "$p")"; echo needle > "$p"; done; }
try "negated" 'f a.log keep.log sub/b.log; printf "*.log\n!keep.log\n" > .gitignore'
try "negated in a nested file" 'f a.log sub/keep.log sub/b.log; echo "*.log" > .gitignore; echo "!keep.log" > sub/.gitignore'
try "all but a folder" 'f README.md code/x.txt; printf "/*\n!/*/\n" > .gitignore'
try "anchored with **" 'f a/a/a.txt b/a/a.txt; echo "/a/**" > .gitignore'
try "star folder then negated" 'f searchme/hello.txt other/x.txt; printf "*\n!searchme/\n!searchme/**\n" > .gitignore'
try "foo/*/*" 'f foo/a/b.txt foo/c.txt; echo "foo/*/*" > .gitignore'
try "blank at the end, escaped" 'f "x " x y; printf "x\\\\ \ny   \n" > .gitignore'
try "CR LF" 'f a.tmp b.txt; printf "*.tmp\r\n" > .gitignore'
try "BOM" 'f a.tmp b.txt; printf "\357\273\277*.tmp\n" > .gitignore'
try "info/exclude" 'f a.tmp b.txt; echo "*.tmp" > .git/info/exclude'
try "rules above the searched folder" 'f pkg/sub/a.gen pkg/sub/b.txt; echo "*.gen" > .gitignore' pkg/sub
try "folder rule" 'f cache/x.txt my/cache/y.txt cache2/z.txt; echo "cache/" > .gitignore'
try "rules above, two levels, negated below" 'f p/q/r/a.gen p/q/r/b.txt p/q/r/keep.gen; echo "*.gen" > .gitignore; echo "!keep.gen" > p/.gitignore' p/q/r
try "letter classes" 'f a1.o a2.o ab.o; echo "a[0-9].o" > .gitignore'
try "hash and bang" 'f "#x" "!y" z; printf "\\\\#x\n\\\\!y\n" > .gitignore'
# the same folder named by a call from the top
rm -rf repo; mkdir repo; cd repo; git init -q .; f pkg/sub/a.gen pkg/sub/b.txt; echo "*.gen" > .gitignore
call grep_content '{"pattern":"needle","path":"pkg/sub"}' > g; grep -q 'a.gen' g && bad "path: pkg/sub finds what .gitignore above names" || ok "path: pkg/sub"
call glob_files '{"pattern":"*","root":"pkg/sub"}' > g; grep -q 'a.gen' g && bad "root: pkg/sub finds what .gitignore above names" || ok "root: pkg/sub"
cd ..
verdict
