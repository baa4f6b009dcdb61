#!/usr/bin/env bash
# Prints the path of a Chromium, installing one if it may; otherwise says how to get one, and exits with 1.
#   CHROMIUM=/path/to/chromium scripts/chromium.sh     takes that one
set -uo pipefail
cd "$(dirname "$0")/.."

found() {
  local name
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name" > /dev/null; then
      command -v "$name"
      return 0
    fi
  done
  # What `playwright install chromium` leaves.
  find "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}" -path '*chrome-linux*/chrome' -type f 2> /dev/null | sort | tail -n 1 | grep .
}

found && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "installing Chromium with apt-get" >&2
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } > /dev/null 2>&1
  found && exit 0
fi
if [ -x .venv/bin/playwright ]; then
  echo "installing Chromium with playwright" >&2
  timeout 300 .venv/bin/playwright install chromium > /dev/null 2>&1
  found && exit 0
fi
cat >&2 << 'MESSAGE'
There is no Chromium, and none could be installed from here. Install one:
  Debian, Ubuntu   sudo apt-get install chromium        (or chromium-browser)
  elsewhere        .venv/bin/playwright install chromium
or name one: CHROMIUM=/path/to/chromium make test-browser
MESSAGE
exit 1
