# Reports which programs wait at terminals. For each request, a session's number, it answers with
# records between `|`: `G` group, state and name of the foreground; for each process there `P` with
# its number and those of its descriptors that are the terminal, `X` if it may not be inspected; for
# each thread `T` with its number and the call that blocks it, and `R` how much it has run; `E` a
# line of an epoll set; `M` the bytes of the list of `poll` or `select`; `S` the output of `stty`,
# if a program may be waiting.

# Reads memory of the process: address, bytes.
m() {
  a=$(($1)) 2>/dev/null
  r="$r|M "$(dd if="/proc/$p/mem" bs=1 skip="$a" count="$2" 2>/dev/null | od -An -v -tx1 2>/dev/null | tr -d '\n')
}

# Looks at a process. The numbers of calls that wait are those of x86-64 and of arm64.
w() {
  p=$1 b=
  for f in /proc/$p/fd/*; do
    { [ "$f" -ef "$y" ] || [ "$f" -ef /dev/tty ]; } && b="$b ${f##*/}"
  done
  r="$r|P $p$b"
  [ -n "$b" ] || return
  for f in /proc/$p/task/*; do
    h=${f##*/}
    { IFS= read -r c <"$f/syscall"; } 2>/dev/null || { r="$r|X"; return; }
    r="$r|T $h $c"
    q=
    { IFS= read -r q <"$f/schedstat"; } 2>/dev/null
    r="$r|R $q"
    set -- $c
    case $1 in
    0|19|63|65) k=1;;
    7|73|271) k=1; n=$(($3 * 8)); [ "$n" -gt MAX ] && n=MAX; m "$2" "$n";;
    23|72|270) k=1; [ "$(($2))" = 1 ] || m "$3" 32;;
    22|232|281|441)
      k=1
      {
        while IFS= read -r l; do
          case $l in tfd:*) r="$r|E $l";; esac
        done <"/proc/$p/fdinfo/$(($2))"
      } 2>/dev/null
      ;;
    esac
  done
}

# Looks at the foreground of a session's terminal.
g() {
  { IFS= read -r l <"/proc/$1/stat"; } 2>/dev/null || return
  set -- ${l##*) }
  u=$5 t=$6 y=/dev/pts/$(( ($5 & 255) | ($5 >> 12 & 1048320) )) k=
  { IFS= read -r l <"/proc/$t/stat"; } 2>/dev/null || { r="G $t"; return; }
  a=${l#*(}
  a=${a%)*}
  set -- ${l##*) }
  r="G $t $1 $a"
  for e in /proc/[0-9]*; do
    { IFS= read -r l <"$e/stat"; } 2>/dev/null || continue
    set -- ${l##*) }
    [ "$3" = "$t" ] && [ "$5" = "$u" ] && [ "$1" != Z ] && w "${e##*/}"
  done
  [ -n "$k" ] && r="$r|S "$(stty -a <"$y" 2>/dev/null | tr '\n' ' ')
}

while IFS=' ' read -r d s; do
  r=
  g "$s"
  echo "$d $r"
done
