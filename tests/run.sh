#!/usr/bin/env bash
# Runs every check and test and ends with the line "N passed, M failed".
#
# Formatting, lints, doc links and licenses; the Rust tests; the tests of a build with MPI under Open MPI's
# mpirun; those of `crates/sql`, a workspace of its own; and the judges, which compare Feedline with programs
# that were written by others:
# - tests/judges: NumPy, pandas, h5py, Pillow, pyarrow, TensorFlow, WebDataset, safetensors, moto, boto3,
#   WsgiDAV, Hydra, PyYAML, DFTracer's tools and Perfetto's classes in a Python environment of their own,
#   Azurite from npm, and Chromium
# - tests/judges_torch: PyTorch in another environment, for checkpoints, orders and traces
# - tests/fidelity: the readers of both environments compared with Feedline's, call by call
#
# Exits with 0 only if all of them ran and passed; an ignored or skipped test counts as failed. PyTorch may
# not fit on a machine; then its judges do not run, and the summary says so. `tests/run.sh torch` runs only
# these and fails if they cannot run; `tests/run.sh sql` runs only those of `crates/sql`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

part=${1:-all}
if [[ $part != all && $part != torch && $part != sql ]]; then
    echo "error: unknown part \`$part\`; expected \`torch\`, \`sql\`, or no argument to run everything" >&2
    exit 2
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedline
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
log=$(mktemp -d "${TMPDIR:-/tmp}/feedline-test.XXXXXX")
trap 'rm -rf "$log"' EXIT
# A calibration of this machine would change the CPU time that runs of the tests burn.
export XDG_DATA_HOME=$log/data
unset FEEDLINE_CALIBRATION

passed=0
failed=0
summary=()

# A minimal toolchain does not have rustfmt and clippy.
toolchain() {
    local component install
    for component in rustfmt:fmt clippy:clippy; do
        if cargo "${component#*:}" --version >/dev/null 2>&1; then continue; fi
        install="rustup component add ${component%:*}"
        if command -v rustup >/dev/null; then
            echo "installing: $install"
            $install
        else
            echo "error: no cargo ${component#*:}; install it with: $install" >&2
            exit 2
        fi
    done
}

# Prints a heading and runs the command. A failure is counted and named, and the other parts still run.
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

# Runs a command. Without a terminal, ends it after this many minutes, so that a hang does not keep the
# other parts from running.
limited() {
    local minutes=$1
    shift
    if [[ -t 0 ]]; then
        "$@"
    else
        timeout --kill-after=10s "${minutes}m" "$@"
    fi
}

# Prints a heading, runs cargo test, and adds up the "test result:" lines of all test programs.
rust_tests() {
    local name=$1 status=0 ok bad ignored
    shift
    echo "== $name"
    limited 30 cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$log/rust" || status=$?
    read -r ok bad ignored < <(awk '
        /^test result: / { ok += $4; bad += $6; ignored += $8 }
        END { print ok + 0, bad + 0, ignored + 0 }' "$log/rust")
    # A build error, a test program that crashed and an empty run report no failed test, but are failures.
    if ((status != 0 && bad == 0 || ok + bad == 0)); then bad=1; fi
    passed=$((passed + ok))
    failed=$((failed + bad + ignored))
    summary+=("$name: $ok passed, $bad failed, $ignored ignored")
}

# Checks licenses, sources and versions of all dependencies. Building cargo-deny takes 2.4 CPU minutes, once.
deny() {
    local version=0.20.2 folder rules=(bans licenses sources)
    folder=$cache/cargo-deny-$version
    if [[ ! -x $folder/bin/cargo-deny ]]; then
        echo "installing: cargo install --locked cargo-deny@$version"
        CARGO_TARGET_DIR=$log/cargo-deny cargo install --locked --quiet --root "$folder" \
            "cargo-deny@$version" || return 1
        rm -rf "$log/cargo-deny"
    fi
    "$folder/bin/cargo-deny" --locked check "${rules[@]}" &&
        "$folder/bin/cargo-deny" --locked --manifest-path crates/sql/Cargo.toml \
            --config deny.toml check "${rules[@]}"
}

# Installs Debian packages, or prints the command to do so.
packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then return 0; fi
    local install="apt-get install -y ${missing[*]}"
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        echo "installing: $install"
        apt-get update -qq && $install -qq >/dev/null
    else
        echo "error: missing packages; install them with: sudo $install" >&2
        return 1
    fi
}

# What the tests of the preload library compile with, and the programs that they trace.
preload_packages() {
    packages gcc libc6-dev liburing-dev git tar sqlite3 nodejs postgresql perl util-linux
}

# Hosts are network namespaces of this machine, see crates/feedline/tests/cli/hosts.rs.
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

# A workspace of its own, in the same target folder. Clippy runs as its compiler, because `cargo clippy` would
# check DataFusion and Ballista again, which takes minutes.
sql_tests() {
    local manifest=crates/sql/Cargo.toml
    check "cargo fmt of sql" cargo fmt --manifest-path "$manifest" --check
    rust_tests "sql tests" --manifest-path "$manifest"
    check "clippy of sql" env RUSTC_WORKSPACE_WRAPPER=clippy-driver \
        CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ \
        cargo test --locked --no-run --manifest-path "$manifest"
}

can_create_environments() {
    "${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null
}

# Makes sure that there is a Python that can create environments.
ensure_python() {
    can_create_environments || { packages python3 python3-venv && can_create_environments; }
}

# An environment's folder is named after its requirements.
environment_id() {
    { "${PYTHON:-python3}" --version; cat "$@"; } | sha256sum | cut -c1-16
}

# Creates the judges' Python environment.
judges_environment() {
    ensure_python || return 1
    judges=$cache/judges-$(environment_id tests/requirements-dlio.txt tests/requirements.txt)
    if [[ ! -e $judges/complete ]]; then
        echo "installing the judges (NumPy, h5py, TensorFlow and others, 2 GB) into $judges"
        rm -rf "$judges"
        "${PYTHON:-python3}" -m venv "$judges" &&
            "$judges/bin/pip" install --quiet --disable-pip-version-check \
                -r tests/requirements.txt &&
            "$judges/bin/pip" install --quiet --disable-pip-version-check \
                --no-deps -r tests/requirements-dlio.txt &&
            touch "$judges/complete"
    fi
}

# Creates the environment of the judges that need PyTorch, or sets `reason`. Wheels are unpacked on the disk
# whose free space was checked, and bytecode is only compiled for what a test imports.
torch_environment() {
    local needed_mib=9216 free_mib
    if ! ensure_python; then
        reason="no Python that can create environments"
        return 1
    fi
    torch=$cache/judges-torch-$(environment_id tests/requirements-torch.txt)
    if [[ -e $torch/complete ]]; then return 0; fi
    rm -rf "$torch"
    mkdir -p "$cache"
    free_mib=$(df --output=avail -BM "$cache" | tail -n 1 | tr -dc 0-9)
    if ((free_mib < needed_mib)); then
        reason="$free_mib MiB free in $cache, $needed_mib needed"
        return 1
    fi
    echo "installing PyTorch (5.6 GB, and 3 GB more until it is unpacked) into $torch"
    if "${PYTHON:-python3}" -m venv "$torch" 2>"$log/pip" && mkdir "$torch/unpack" &&
        TMPDIR=$torch/unpack "$torch/bin/pip" install --quiet --disable-pip-version-check \
            --no-cache-dir --no-compile -r tests/requirements-torch.txt 2>"$log/pip"; then
        rm -rf "$torch/unpack"
        touch "$torch/complete"
        return 0
    fi
    rm -rf "$torch"
    cat "$log/pip" >&2
    reason="not installable: $(tail -n 1 "$log/pip" | sed 's/^ERROR: //')"
    return 1
}

# Installs Azurite, Microsoft's emulator of Azure's object store, in a folder named after its version.
azurite_environment() {
    local version=3.35.0
    if ! command -v npm >/dev/null; then packages nodejs npm || return 1; fi
    local folder=$cache/azurite-$version
    export AZURITE=$folder/node_modules/.bin/azurite-blob
    if [[ -e $folder/complete ]]; then return 0; fi
    local install=(npm install --prefix "$folder" --no-audit --no-fund --silent "azurite@$version")
    echo "installing: ${install[*]}"
    rm -rf "$folder"
    mkdir -p "$folder"
    if ! "${install[@]}"; then
        echo "error: cannot install Azurite with: ${install[*]}" >&2
        return 1
    fi
    touch "$folder/complete"
}

# Builds what the judges look at, at once so that no library is built twice.
judged_programs() {
    cargo build --locked --package feedline --bin feedline \
        --package feedline-checkpoint --example write --package feedline-trace --example known \
        --package feedline-report --example sample_report \
        --package feedline-dataset --example read_samples &&
        cargo build --locked --package feedline-preload
}

# Runs the judges of a folder with their Python; the counts come from pytest's XML report.
judge() {
    local name=$1 python=$2 folder=$3 ok=0 bad=1 skipped=0 report=$log/judges.xml
    rm -f "$report"
    FEEDLINE_BIN=$CARGO_TARGET_DIR/debug/feedline \
        FEEDLINE_CHECKPOINT_WRITE=$CARGO_TARGET_DIR/debug/examples/write \
        FEEDLINE_TRACE_KNOWN=$CARGO_TARGET_DIR/debug/examples/known \
        FEEDLINE_SAMPLE_REPORT=$CARGO_TARGET_DIR/debug/examples/sample_report \
        FEEDLINE_READ_SAMPLES=$CARGO_TARGET_DIR/debug/examples/read_samples \
        limited 15 "$python" -m pytest -q -p no:cacheprovider -o tmp_path_retention_policy=failed \
        --junitxml="$report" "$folder" || true
    if [[ -s $report ]]; then
        read -r ok bad skipped < <("$python" - "$report" <<'PY'
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
        # An empty run is a failure.
        if ((ok + bad + skipped == 0)); then bad=1; fi
    fi
    passed=$((passed + ok))
    failed=$((failed + bad + skipped))
    summary+=("$name: $ok passed, $bad failed, $skipped skipped")
}

judge_tests() {
    echo "== judges"
    if ! azurite_environment; then
        failed=$((failed + 1))
        summary+=("Azurite: FAILED, not installed")
    fi
    # The browser that shows the pages, and the tracer that counts calls.
    if ! packages chromium chromium-driver strace; then
        failed=$((failed + 1))
        summary+=("Chromium, strace: FAILED, not installed")
    fi
    if judges_environment && judged_programs; then
        PYTHONDONTWRITEBYTECODE=1 judge "judges" "$judges/bin/python" tests/judges
    else
        failed=$((failed + 1))
        summary+=("judges: FAILED, not installed or nothing to judge")
    fi
}

# Compares the real readers with Feedline's under strace, on separate file systems, which only root can mount.
# Needs both environments.
fidelity_tests() {
    echo "== fidelity"
    local reason=
    if [[ $(id -u) != 0 ]]; then
        summary+=("fidelity: NOT RUN, only root can mount; run it with: sudo -E make test")
    elif ! torch_environment; then
        summary+=("fidelity: NOT RUN, $reason; install it with: make test-torch")
    elif packages strace e2fsprogs mount gcc libc6-dev && judges_environment && judged_programs; then
        FEEDLINE_TORCH_PYTHON=$torch/bin/python PYTHONDONTWRITEBYTECODE=1 \
            judge "fidelity" "$judges/bin/python" tests/fidelity
    else
        failed=$((failed + 1))
        summary+=("fidelity: FAILED, not installed or nothing to compare")
    fi
}

# Every process of a test imports PyTorch, which takes ten seconds without bytecode.
torch_tests() {
    echo "== torch judges"
    local reason=
    if ! torch_environment; then
        if [[ $part == torch ]]; then
            failed=$((failed + 1))
            summary+=("torch judges: FAILED, $reason")
        else
            summary+=("torch judges: NOT RUN, $reason; install it with: make test-torch")
        fi
    elif judged_programs; then
        PYTHONDONTWRITEBYTECODE='' PYTHONPYCACHEPREFIX=$torch/bytecode \
            judge "torch judges" "$torch/bin/python" tests/judges_torch
    else
        failed=$((failed + 1))
        summary+=("torch judges: FAILED, nothing to judge")
    fi
}

if [[ $part != torch ]]; then
    toolchain
fi
if [[ $part == all ]]; then
    check "cargo fmt" cargo fmt --all --check
    check "cargo clippy" cargo clippy --locked --workspace --all-targets -- -D warnings
    check "cargo clippy without object stores" cargo clippy --locked --package feedline-store \
        --no-default-features --all-targets -- -D warnings
    check "cargo doc" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --workspace
    check "cargo deny" deny
    preload_packages || true
    rust_tests "rust tests" --workspace
    mpi_tests
fi
if [[ $part != torch ]]; then
    sql_tests
fi
if [[ $part == all ]]; then
    judge_tests
fi
if [[ $part != sql ]]; then
    torch_tests
fi
if [[ $part == all ]]; then
    fidelity_tests
fi

echo
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed"
((failed == 0))
