#!/usr/bin/env bash
# Source: google-gemini/gemini-cli#8015 (actions/x@v7), #22129 (mail address, ENAMETOOLONG), laravel/boost#524 (@scope/pkg). Kind: an @ in a task that names
# no file: package scopes, versions, mail, decorators, CSS, folders. The words must go to the model unchanged, or the refusal must be right.
. "$(dirname "$0")/../lib/lib.sh"
export PYTHONPATH="$LIB"; python3 -c "from chat import *; json.dump([oatext('fine')],open('script.json','w'))"; start_mock script.json; mkdir -p src 'dir with space'; echo hi > real.txt; echo hi > 'dir with space/a b.txt'; head -c 3000000 /dev/urandom > big.bin; mkfifo pipe; ln -s real.txt link.txt
try() { : > $T/requests.jsonl; OPENAI_BASE_URL=$MOCK_URL/v1 timeout 20 "$JAATO" run --model openai/m "$1" > out 2>err; rc=$?
 got=$(python3 -c "
import json
for l in open('$T/requests.jsonl'):
    b=json.loads(l)['body']
    if isinstance(b,dict) and 'messages' in b: print(json.dumps(b['messages'][-1]['content'])[:400])" | tail -1)
 case "$2" in words) [ $rc = 0 ] && case "$got" in *"$3"*) ok "$1 -> words";; *) bad "$1: the model got $got";; esac || bad "$1: rc $rc: $(head -c 200 err | tr '\n' ' ')";;
  file) case "$got" in *"$3"*) ok "$1 -> file";; *) bad "$1: rc $rc $got $(head -c 150 err)";; esac;;
  any) [ $rc != 124 ] && ok "$1 -> rc $rc $(head -c 130 err | tr '\n' ' ')" || bad "$1 hangs";; esac; }
try 'add @types/node and @babel/core' words '@types/node'
try 'use actions/checkout@v4 and lodash@4.17.21' words 'checkout@v4'
try 'write to ann@example.org about it' words 'ann@example.org'
try "mail bob@example.org,$(python3 -c "print('x'*5000)")" words 'bob@example.org'
try '@Override is missing; see @media (max-width: 3px) and @param x' words '@Override'
try 'what is @' words 'what is @'
try '@@ -1,3 +1,4 @@ is a hunk' words '@@ -1,3'
try 'ssh git@example.org:a/b.git' words 'git@example.org'
try '@real.txt what is this' file 'hi'
try 'what is in @src' any
try 'look at @/etc/hostname please' any
try 'look at @pipe' any
try 'look at @big.bin' any
try "$(printf 'paste: foo\n@decorator\ndef f(): pass')" words '@decorator'
try '@everyone hello, @real.txtx' words '@everyone'
verdict
