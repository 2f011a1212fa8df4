#!/usr/bin/env bash
# Source: earendil-works/pi#418 (values filled in again), anomalyco/opencode#3272 and #9831, 21st-dev/1code#86 (several lines), anthropics/claude-code#8406 (quotes),
# mastra-ai/mastra#13493. Kind: arguments of prompts: values with $, {{}}, quotes, lines; literal $ARGUMENTS.
. "$(dirname "$0")/../lib/lib.sh"
mkdir -p $HOME/.jaato/prompts; P=$HOME/.jaato/prompts
printf -- '---\ndescription: d\n---\nPrice: $ARGUMENTS end $ARGUMENTS.\n' > $P/all.md
printf -- '---\ndescription: d\n---\nFirst {{$1}} second {{$2:none}}\n' > $P/pos.md
printf -- '---\ndescription: d\n---\nRun `echo $1 $2` and awk {print $1}\n' > $P/shell.md
printf -- '---\ndescription: d\n---\nReview {{path}} as {{who:a friend}}\n' > $P/named.md
printf -- '---\ndescription: d\n---\nNothing taken\n' > $P/none.md
p() { timeout 30 "$JAATO" command prompt "$@" 2>err | python3 -c "import json,sys; d=sys.stdin.read(); j=json.loads(d[d.index('{'):]); print(j.get('result',j) if not isinstance(j.get('result'),dict) else json.dumps(j['result']))" > o 2>>err; cat o; }
has() { case "$(cat o)" in *"$2"*) ok "$1";; *) bad "$1: got '$(tr '\n' '|' < o | head -c 200)' $(head -c 150 err)";; esac; }
p all 'is $100 & $ARGUMENTS {{path}} $1' >/dev/null; has "a value is not filled in again" 'Price: is $100 & $ARGUMENTS {{path}} $1 end is $100 & $ARGUMENTS {{path}} $1.'
p pos '$2 {{$1}}' >/dev/null; has "positions are not filled in again" 'First $2 second {{$1}}'
p pos '"two words" x' >/dev/null; has "quoted words are one" 'First two words second x'
p pos "don't stop" >/dev/null; has "an apostrophe" "First don't second stop"
p shell 'a b' >/dev/null; has "shell's own \$1 stays" 'echo $1 $2'
p named 'src/main.rs' >/dev/null; has "in order" 'Review src/main.rs as a friend'
p named 'path=a=b who=me' >/dev/null; has "a value with =" 'Review a=b as me'
p none 'left over' >/dev/null; has "unused arguments come after the prompt" 'left over'
p all "$(printf 'line one\nline two "x\n')" >/dev/null; has "lines" $'line one\nline two "x'
verdict
