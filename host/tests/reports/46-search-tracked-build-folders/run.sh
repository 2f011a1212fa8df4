#!/usr/bin/env bash
# Source: the reverse of anomalyco/opencode#31994 and continuedev/continue#7785 ("no matches" explains what is left out); ggreer/the_silver_searcher#692. Kind: sources that are tracked by git and are in a folder called
# build, dist, out, target, coverage, env or _build are never found, and nothing says that they were passed over.
. "$(dirname "$0")/../lib/lib.sh"
git init -q .; for p in src/build/plan.rs packages/core/dist/index.ts lib/python/build/paths.py src/out/writer.go src/target/select.rs pkg/coverage/merge.py docs/_build/conf.py .github/workflows/ci.yml yarn.lock app.min.js; do mkdir -p $(dirname $p); echo needle > $p; done; git add -A
call grep_content '{"pattern":"needle"}' > g.json; call glob_files '{"pattern":"**/*.rs"}' > f.json
python3 - <<'PY' > r
import json; d=json.load(open("g.json")); print(d["total_matches"], sorted({m["file"] for m in d["matches"]}), {k:v for k,v in d.items() if k not in("matches","pattern","path","file_glob")}); f=json.load(open("f.json")); print(f["total"], {k:v for k,v in f.items() if k not in("files",)})
PY
cat r | cut -c1-400
if grep -q 'src/build/plan.rs' r; then ok "found"; elif grep -qi 'left out\|excluded\|passed over' r; then ok "not found, and said so"; else bad "10 tracked files hold the word, total_matches is $(cut -d' ' -f1 r | head -1), and nothing says that folders were passed over"; fi
verdict
