#!/usr/bin/env bash
# Runs every check and test and ends with the line "N passed, M failed".
#
# Four parts: formatting and lints, the Rust tests, the tests of a build with MPI under Open MPI's
# mpirun, and the judges: NumPy, pandas, h5py, Pillow, pyarrow, TensorFlow, WebDataset, safetensors,
# moto, boto3, WsgiDAV, Hydra and PyYAML in a Python environment of their own, and Azurite from npm, which
# look at what the built program wrote and read.
# Exit status 0 only if all of them ran and passed; an ignored or skipped test counts as failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedline
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
log=$(mktemp -d "${TMPDIR:-/tmp}/feedline-test.XXXXXX")
trap 'rm -rf "$log"' EXIT

passed=0
failed=0
summary=()

# rustfmt and clippy are parts of the toolchain that a minimal install leaves out.
for part in rustfmt:fmt clippy:clippy; do
    if ! cargo "${part#*:}" --version >/dev/null 2>&1; then
        bring="rustup component add ${part%:*}"
        if command -v rustup >/dev/null; then
            echo "installing: $bring"
            $bring
        else
            echo "error: no cargo ${part#*:}; bring it with: $bring" >&2
            exit 2
        fi
    fi
done

# Prints a heading, runs the command; a failure is counted and named, the other parts still run.
check() {
    local name=$1
    shift
    echo "== $name"
    if "$@"; then
        summary+=("$name: clean")
    else
        failed=$((failed + 1))
        summary+=("$name: FAILED")
    fi
}

# Prints a heading, runs cargo test, adds up the "test result:" lines of all test programs.
rust_tests() {
    local name=$1 status=0 ok bad ignored
    shift
    echo "== $name"
    cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$log/rust" || status=$?
    read -r ok bad ignored < <(awk '
        /^test result: / { ok += $4; bad += $6; ignored += $8 }
        END { print ok + 0, bad + 0, ignored + 0 }' "$log/rust")
    # A build error or a test program that died has no failed test to show for it, an empty run none
    # to show at all.
    if ((status != 0 && bad == 0 || ok + bad == 0)); then bad=1; fi
    passed=$((passed + ok))
    failed=$((failed + bad + ignored))
    summary+=("$name: $ok passed, $bad failed, $ignored ignored")
}

# Installs Debian packages, or says how.
packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then return 0; fi
    local bring="apt-get install -y ${missing[*]}"
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        echo "installing: $bring"
        apt-get update -qq && $bring -qq >/dev/null
    else
        echo "error: missing packages; bring them with: sudo $bring" >&2
        return 1
    fi
}

# Hosts are namespaces of this machine, see crates/feedline/tests/cli/hosts.rs.
mpi_tests() {
    if packages libopenmpi-dev openmpi-bin libclang-dev iproute2; then
        check "cargo clippy with MPI" cargo clippy --locked --package feedline --features mpi \
            --all-targets -- -D warnings
        rust_tests "MPI tests" --package feedline --features mpi --test cli -- mpi:: hosts::
    else
        failed=$((failed + 1))
        summary+=("MPI tests: FAILED, no MPI")
    fi
}

# Brings up the judges' Python environment; its folder is named after what goes into it.
judges_environment() {
    local python=${PYTHON:-python3} id
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        packages python3 python3-venv || return 1
    fi
    id=$({ "$python" --version; cat tests/requirements*.txt; } | sha256sum | cut -c1-16)
    judges=$cache/judges-$id
    if [[ ! -e $judges/complete ]]; then
        echo "installing the judges (NumPy, h5py, TensorFlow and others, 2 GB) into $judges"
        rm -rf "$judges"
        "$python" -m venv "$judges" &&
            "$judges/bin/pip" install --quiet --disable-pip-version-check \
                -r tests/requirements.txt &&
            "$judges/bin/pip" install --quiet --disable-pip-version-check \
                --no-deps -r tests/requirements-dlio.txt &&
            touch "$judges/complete"
    fi
}

# Brings up Azurite, Microsoft's emulator of Azure's object store; its folder is named after its version.
azurite_environment() {
    local version=3.35.0
    if ! command -v npm >/dev/null; then packages nodejs npm || return 1; fi
    local folder=$cache/azurite-$version
    export AZURITE=$folder/node_modules/.bin/azurite-blob
    if [[ -e $folder/complete ]]; then return 0; fi
    local bring=(npm install --prefix "$folder" --no-audit --no-fund --silent "azurite@$version")
    echo "installing: ${bring[*]}"
    rm -rf "$folder"
    mkdir -p "$folder"
    if ! "${bring[@]}"; then
        echo "error: no Azurite; bring it with: ${bring[*]}" >&2
        return 1
    fi
    touch "$folder/complete"
}

# pytest's own counts come from its XML report.
judge_tests() {
    echo "== judges"
    local ok=0 bad=1 skipped=0
    if ! azurite_environment; then
        failed=$((failed + 1))
        summary+=("Azurite: FAILED, not installed")
    fi
    if judges_environment && cargo build --locked --package feedline; then
        FEEDLINE_BIN=$CARGO_TARGET_DIR/debug/feedline PYTHONDONTWRITEBYTECODE=1 \
            "$judges/bin/python" -m pytest -q -p no:cacheprovider \
            --junitxml="$log/judges.xml" tests/judges || true
        if [[ -s $log/judges.xml ]]; then
            read -r ok bad skipped < <("$judges/bin/python" - "$log/judges.xml" <<'PY'
import sys
import xml.etree.ElementTree as tree

suites = list(tree.parse(sys.argv[1]).iter("testsuite"))
total, bad, skipped = (
    sum(int(suite.get(key, 0)) for suite in suites for key in keys)
    for keys in (("tests",), ("failures", "errors"), ("skipped",))
)
print(total - bad - skipped, bad, skipped)
PY
            )
            # An empty run is a fault of the run, not a success.
            if ((ok + bad + skipped == 0)); then bad=1; fi
        fi
    fi
    passed=$((passed + ok))
    failed=$((failed + bad + skipped))
    summary+=("judges: $ok passed, $bad failed, $skipped skipped")
}

check "cargo fmt" cargo fmt --all --check
check "cargo clippy" cargo clippy --locked --workspace --all-targets -- -D warnings
rust_tests "rust tests" --workspace
mpi_tests
judge_tests

echo
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed"
((failed == 0))
