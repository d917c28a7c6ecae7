#!/bin/sh
# An adapter as docs/lab/peers.md describes it, for servers that do nothing: what the tests start. Every node is a
# `sleep`; what is done to them stands in DIR/acts. A ring of nine tells one line that is none.
verb=$1
shift
case $verb in node-start | cut) number=$1; shift ;; esac
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2 ;;
    --dir) dir=$2 ;;
    --port) port=$2 ;;
  esac
  shift 2
done

begin() {
  setsid sleep 600 &
  echo $! > "$dir/$1.pid"
  echo "127.0.0.$1:$(cat "$dir/port") $!"
}

case $verb in
  up)
    mkdir "$dir"
    echo "$port" > "$dir/port"
    for node in $(seq "$nodes"); do begin "$node"; done
    if [ "$nodes" = 9 ]; then echo nonsense; fi
    ;;
  node-start) begin "$number" ;;
  cut) echo "cut $number" >> "$dir/acts" ;;
  down)
    for file in "$dir"/*.pid; do kill -9 "$(cat "$file")"; done
    rm -r "$dir"
    ;;
  *)
    echo "this adapter knows no '$verb'" >&2
    exit 64
    ;;
esac
