#!/usr/bin/env bash
# Synchronous HMASD training with TensorBoard.
#
#   ./start_sync_training.sh [--port N] [--no-tensorboard] [options of train_sync_enhanced.py]
#
# TensorBoard listens on port 6006 or the next free one (or exactly on --port), and stops when training does.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
refuse() { echo "start_sync_training.sh: $1" >&2; exit 2; }

if [[ -z "${PYTHON:-}" ]]; then
  PYTHON="$root/.venv/bin/python"
  [[ -x "$PYTHON" ]] || PYTHON="$(command -v python3)"
fi
"$PYTHON" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("apexrl") and u.find_spec("tensorboard")))' ||
  refuse "$PYTHON does not have the packages of this project; run \`make setup\` in $root first"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

port=""
folder="."
board=yes
arguments=()
while (($#)); do
  case "$1" in
    --port) port="${2-}"; [[ $# -ge 2 ]] || refuse "--port needs a number"; shift 2 ;;
    --port=*) port="${1#--port=}"; shift ;;
    --no-tensorboard) board=no; shift ;;
    --eval-only) board=no; arguments+=("$1"); shift ;;
    -h | --help)
      board=no
      echo "usage: start_sync_training.sh [--port N] [--no-tensorboard] [options of train_sync_enhanced.py]"
      echo
      echo "Trains with the settings in config_1.py and starts TensorBoard on port 6006 or the next free one."
      echo "  --port N           exactly this port for TensorBoard"
      echo "  --no-tensorboard   no TensorBoard"
      echo
      arguments+=("$1"); shift ;;
    --folder) [[ $# -ge 2 ]] || refuse "--folder needs a path"; folder="$2"; arguments+=("$1" "$2"); shift 2 ;;
    --folder=*) folder="${1#--folder=}"; arguments+=("$1"); shift ;;
    *) arguments+=("$1"); shift ;;
  esac
done
if [[ -n "$port" ]] && ! { [[ "$port" =~ ^[0-9]{1,5}$ ]] && ((10#$port >= 1 && 10#$port <= 65535)); }; then
  refuse "--port $port: a port is a number from 1 to 65535"
fi

free_port() { # the first free port from $1 on, up to $2; nothing if there is none
  "$PYTHON" - "$1" "$2" <<'PY'
import socket
import sys

for port in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(port)
        break
PY
}

has_events() ( # the pattern is relative, so that a folder's name may have [ or * in it
  CDPATH= cd -- "$folder/tf-logs" && compgen -G "events.out.tfevents.*.$$.*" >/dev/null
)

start_board() { # start TensorBoard when training, which keeps the process id of this script, has written its first events
  until has_events 2>/dev/null; do sleep 0.2 >/dev/null 2>&1; done
  echo "TensorBoard: http://localhost:$port"
  exec "$PYTHON" -m tensorboard.main --logdir "$folder/tf-logs" --port "$port" >"$folder/logs/tensorboard.log" 2>&1
}

keep_board() { # TensorBoard until the end of standard input, which training holds open as long as it runs
  trap : INT TERM HUP # a terminal sends these to training, too, and that ends when its checkpoint is written
  start_board &
  (trap '' INT TERM HUP && exec cat >/dev/null)
  kill "$!" 2>/dev/null || true
  wait
}

if [[ "$board" == yes ]]; then
  if [[ -n "$port" ]]; then wanted="$port" last="$port"; else wanted=6006 last=6106; fi
  port="$(free_port "$wanted" "$last")"
  [[ -n "$port" ]] || refuse "no free port from $wanted to $last for TensorBoard; choose another by --port, or --no-tensorboard"
  exec 9> >(keep_board)
fi

# Training takes the place of this shell, so that every signal reaches it exactly once: a second one ends it at once.
exec "$PYTHON" "$root/train_sync_enhanced.py" ${arguments[@]+"${arguments[@]}"}
