# Tracks the commands of a container, and ends them. Requests: `t` reports that a command started,
# `u` that it ended (it stays tracked if it left processes), `e` ends one command, `x` ends all and
# the shell itself, `s` sends a signal to a group, `f` asks for a terminal's foreground process. The
# empty subshells make the shell reap the processes that it inherited.

S=' '

# Lists in `p` the processes of the session `$1`: by session, by group, or by descent.
w() {
  g=$1 p=" $1 " n=1
  while [ "$n" = 1 ]; do
    n=0
    for f in /proc/[0-9]*/stat; do
      { IFS= read -r l <"$f"; } 2>/dev/null || continue
      i=${l%% *}
      case $p in *" $i "*) continue;; esac
      set -- ${l##*) }
      case " $3 $4 " in
      *" $g "*) ;;
      *) case $p in *" $2 "*) ;; *) continue;; esac;;
      esac
      [ "$i" = 1 ] || [ "$i" = "$$" ] || { p="$p$i " n=1; }
    done
  done
}

# Ends them, repeatedly until no new one appears, because they may start others in that time.
e() {
  o= k=0
  while [ "$k" -lt 9 ]; do
    w "$1"
    [ "$p" = "$o" ] && return
    o=$p k=$((k+1))
    kill -KILL "-$1" 2>/dev/null
    for i in $p; do kill -KILL "$i" 2>/dev/null; done
  done
}

# Lists the processes that a command has left.
u() {
  r=ok
  w "$1"
  for i in $p; do
    { IFS= read -r l <"/proc/$i/stat"; } 2>/dev/null || continue
    case ${l##*) } in
    Z*) ;;
    *) n=${l#*(}; r="$r $i ${n%)*}/";;
    esac
  done
  [ "$r" = ok ] && S="${S%% $1 *} ${S#* $1 }"
}

# Returns the foreground process of a session's terminal.
f() {
  { IFS= read -r l <"/proc/$1/stat"; } 2>/dev/null || return
  set -- ${l##*) }
  t=$6
  { IFS= read -r l <"/proc/$t/stat"; } 2>/dev/null || { r="$t"; return; }
  a=${l#*(}
  a=${a%)*}
  set -- ${l##*) }
  c=
  { IFS= read -r c <"/proc/$t/wchan"; } 2>/dev/null
  r="$t $1 ${c:--} $a"
}

while IFS=' ' read -r d v a b; do
  r=ok
  case $v in
  t) S="$S$a ";;
  u) u "$a"; (:);;
  e) e "$a"; (:);;
  x) break;;
  s) kill "-$b" "-$a" 2>/dev/null || kill "-$b" "$a" 2>/dev/null || r=no;;
  f) r=; f "$a";;
  *) r=no;;
  esac
  echo "$d $r"
done
for s in $S; do e "$s"; done
[ "$v" = x ] && echo "$d ok"
