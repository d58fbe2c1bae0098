#!/usr/bin/env bash
# Install the servers that the tests start. As root on Debian or Ubuntu only; elsewhere say what is missing.
# Always succeeds: the tests themselves say what they lack, and with CI=true they fail for it.
set -u

if command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "PostgreSQL's server is missing: install the package postgresql (as root on Debian: make servers)"
  exit 0
fi

# Only the programs are wanted: no cluster is made, and so no service starts.
mkdir -p /etc/postgresql-common
settings=/etc/postgresql-common/createcluster.conf
[ -e "$settings" ] || echo 'create_main_cluster = false' >"$settings"

output=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
options=(-qq -y --no-install-recommends -o Dpkg::Options::=--force-confold)
if ! { apt-get -qq update && apt-get install "${options[@]}" postgresql; } >"$output" 2>&1; then
  echo "PostgreSQL's server could not be installed:"
  tail -n 5 "$output"
fi
rm -f "$output"
