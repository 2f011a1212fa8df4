#!/usr/bin/env bash
# Source: stacklok/toolhive#4085, mindroom-ai/mindroom#43, mattbaya/ITEGA#32 (EBUSY on a bind-mounted file), anthropics/claude-code#31290. Kind: files that can be written and not replaced: a mounted file, a file in a folder without the right to
# make files, a file of another owner. Hard. They are written in place, or the error says why; modes and owners stay.
. "$(dirname "$0")/../lib/lib.sh"
chmod 755 "$T" "$T/w"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  mkdir -p "$T/u/home" d; echo 'a = 1' > d/f.txt; chown 54321 d/f.txt; chmod 644 d/f.txt; chmod 755 d; chown -R 54321 "$T/u"
  U="setpriv --reuid=54321 --regid=54321 --clear-groups env HOME=$T/u/home"
  $U timeout 60 "$JAATO" call updateFile '{"path":"d/f.txt","old":"a = 1","new":"a = 2"}' > o 2> e; grep -q 'a = 2' d/f.txt && ok "own file in a folder that cannot be written: written" || { grep -q 'error' e && bad "own file in another's folder: an editor could write it, jaato: $(grep -m1 error e | cut -c1-200)" ; }
  [ "$(ls d)" = f.txt ] && ok "nothing left behind" || bad "left: $(ls d)"
  mkdir g; echo 'a = 1' > g/f.txt; chown 54322:54322 g/f.txt; chmod 666 g/f.txt; chmod 777 g; $U timeout 60 "$JAATO" call updateFile '{"path":"g/f.txt","old":"a = 1","new":"a = 2"}' > o 2> e; grep -q 'a = 2' g/f.txt && { [ "$(stat -c %u g/f.txt)" = 54322 ] && ok "another's writable file keeps its owner" || bad "another's writable file changes its owner without a word: $(stat -c '%u:%g %a' g/f.txt)"; } || echo "  told: $(grep -m1 error e | cut -c1-200)"
  echo 'a = 1' > r.txt; chmod 444 r.txt; chown 54321 r.txt; chown 54321 .; $U timeout 60 "$JAATO" call updateFile '{"path":"r.txt","old":"a = 1","new":"a = 2"}' > o 2> e; grep -q 'a = 2' r.txt && bad "a read-only file (0444) is written without a word, now $(stat -c %a r.txt)" || ok "a read-only file is refused: $(grep -m1 error e | cut -c1-140)"; chown root .
fi
echo 'a = 1' > src.txt; touch m.txt
if unshare -m true 2>/dev/null; then unshare -m bash -c "mount --bind src.txt m.txt && timeout 60 '$JAATO' call updateFile '{\"path\":\"m.txt\",\"old\":\"a = 1\",\"new\":\"a = 2\"}' > o 2> e"; grep -q 'a = 2' src.txt && ok "a mounted file" || bad "a mounted file: $(grep -m1 error e | cut -c1-200)"; else echo "  note: no right to mount here"; fi
if command -v setfattr >/dev/null; then echo x > xa; setfattr -n user.k -v v xa 2>/dev/null && { call updateFile '{"path":"xa","old":"x","new":"y"}' >/dev/null; getfattr -n user.k xa >/dev/null 2>&1 && ok xattr || bad "an extended attribute is lost"; }; fi
verdict
