#!/usr/bin/env bash
# Synchronous HMASD training with TensorBoard beside it.
#
#   ./start_sync_training.sh [--port N] [--no-tensorboard] [options of train_sync_enhanced.py]
#
# TensorBoard listens on port 6006 or the next free one (or exactly on --port), and stops when training does.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ -z "${PYTHON:-}" ]]; then
  PYTHON="$root/.venv/bin/python"
  [[ -x "$PYTHON" ]] || PYTHON="$(command -v python3)"
fi
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

port=""
folder="."
board=yes
arguments=()
while (($#)); do
  case "$1" in
    --port) port="${2:?--port needs a number}"; shift 2 ;;
    --port=*) port="${1#--port=}"; shift ;;
    --no-tensorboard) board=no; shift ;;
    --eval-only | -h | --help) board=no; arguments+=("$1"); shift ;;
    --folder) folder="${2:?--folder needs a path}"; arguments+=("$1" "$2"); shift 2 ;;
    --folder=*) folder="${1#--folder=}"; arguments+=("$1"); shift ;;
    *) arguments+=("$1"); shift ;;
  esac
done

free_port() { # the first free port from $1 on, up to $2
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
else:
    sys.exit(f"no free port from {sys.argv[1]} to {sys.argv[2]}; choose another by --port")
PY
}

board_pid=""
stop_board() {
  if [[ -n "$board_pid" ]]; then
    kill "$board_pid" 2>/dev/null || true
    wait "$board_pid" 2>/dev/null || true
  fi
}
trap stop_board EXIT

if [[ "$board" == yes ]]; then
  if [[ -n "$port" ]]; then last="$port"; else port=6006; last=6106; fi
  port="$(free_port "$port" "$last")"
  mkdir -p "$folder/tf-logs" "$folder/logs"
  "$PYTHON" -m tensorboard.main --logdir "$folder/tf-logs" --port "$port" >"$folder/logs/tensorboard.log" 2>&1 &
  board_pid=$!
  echo "TensorBoard: http://localhost:$port"
fi

# Training runs in the background of this shell, so that Ctrl-C and SIGTERM reach it as a request to save and leave.
"$PYTHON" "$root/train_sync_enhanced.py" ${arguments[@]+"${arguments[@]}"} &
training_pid=$!
trap 'kill -TERM "$training_pid" 2>/dev/null || true' TERM
trap : INT # a terminal sends Ctrl-C to training by itself
status=0
wait "$training_pid" || status=$?
while kill -0 "$training_pid" 2>/dev/null; do # interrupted by a signal: wait until the checkpoint is written
  status=0
  wait "$training_pid" || status=$?
done
exit "$status"
