#!/usr/bin/env bash
# Source: MoonshotAI/kimi-cli#2065, hukkin/tomli#304, herdrdev/herdr#3678, subosito/gotenv#25, nektos/act#2638, aws/amazon-q-developer-cli#2082 (comments). Kind: files of
# settings that Windows tools write: BOM, CR LF, UTF-16; .env with export, quotes, comments, blanks.
. "$(dirname "$0")/../lib/lib.sh"
C=$HOME/.config/jaato; mkdir -p $C
val() { timeout 20 "$JAATO" config show 2>err | grep -E "^ *session.steps_max" | tr -s ' '; }
w() { python3 -c "import sys;open('$C/config.toml','wb').write(eval(sys.argv[1]))" "$1"; }
w "b'\xef\xbb\xbf[session]\nsteps_max = 7\n'"; val | grep -qE '= 7( |$)' && ok "toml with BOM" || bad "toml with BOM: $(head -c 200 err)$(val)"
w "b'[session]\r\nsteps_max = 7\r\n'"; val | grep -qE '= 7( |$)' && ok "toml with CR LF" || bad "toml with CR LF: $(head -c 200 err)"
w "b'\xff\xfe'+'[session]\nsteps_max = 7\n'.encode('utf-16-le')"; val | grep -qE '= 7( |$)' && ok "toml in UTF-16" || { grep -qi 'utf' err && echo "  told: UTF-16: $(head -c 250 err | tr '\n' ' ')" || bad "UTF-16: $(head -c 250 err)"; }
w "b'a = 1\n\xef\xbb\xbf[session]\nsteps_max = 7\n'"; val; echo "  BOM in the middle: $(head -c 200 err | tr '\n' ' ')"; rm $C/config.toml
e() { python3 -c "import sys;open('x.env','wb').write(eval(sys.argv[1]))" "$1"; timeout 20 "$JAATO" --env-file x.env config show 2>err > o || timeout 20 "$JAATO" config show --env-file x.env 2>err > o; grep -qE "steps_max = 7 " o && ok "$2" || { [ "$2" = ".env in UTF-16" ] && grep -qi utf err && echo "  told: $2" ; } || bad "$2: $(grep steps_max o | tr -s ' ' | head -c 120) $(head -c 200 err | tr '\n' ' ')"; }
e "b'\xef\xbb\xbfJAATO_SESSION_STEPS_MAX=7\n'" ".env with BOM"
e "b'JAATO_SESSION_STEPS_MAX=7\r\nX=1\r\n'" ".env with CR LF"
e "b'export JAATO_SESSION_STEPS_MAX=7\n'" ".env with export"
e "b'JAATO_SESSION_STEPS_MAX=\"7\"\n'" ".env with quotes"
e "b'JAATO_SESSION_STEPS_MAX=7 # steps\n'" ".env with a comment behind"
e "b'JAATO_SESSION_STEPS_MAX = 7\n'" ".env with blanks"
e "b\"A='multi\nline'\nJAATO_SESSION_STEPS_MAX=7\n\"" ".env with a value of two lines"
e "b'\xff\xfe'+'JAATO_SESSION_STEPS_MAX=7\n'.encode('utf-16-le')" ".env in UTF-16"
verdict
