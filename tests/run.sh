#!/usr/bin/env bash
# Runs every check and test and ends with the line "N passed, M failed".
#
# Seven parts: formatting, lints, doc links and licenses, the Rust tests, the tests of a build with MPI under
# Open MPI's mpirun, those of `crates/sql` (DataFusion and Ballista, a workspace of its own), and the judges: NumPy,
# pandas, h5py, Pillow, pyarrow, TensorFlow, WebDataset, safetensors, moto, boto3, WsgiDAV, Hydra, PyYAML,
# DFTracer's tools and Perfetto's classes in a Python environment of their own, Azurite from npm, and
# Chromium, which look at what the built program wrote and read; PyTorch in another one, which looks
# at checkpoints and orders, and is traced; and the readers of both beside Feedline's, call by call.
# Exit status 0 only if all of them ran and passed; an ignored or skipped test counts as failed. PyTorch
# is so large that a machine may not have room for it: then its judges do not run, and the summary says
# so. `tests/run.sh torch` runs them alone, and there it is a failure; `tests/run.sh sql` runs those of
# `crates/sql` alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

part=${1:-all}
if [[ $part != all && $part != torch && $part != sql ]]; then
    echo "error: no part \`$part\` of the tests; expected \`torch\`, \`sql\`, or nothing for all of them" >&2
    exit 2
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedline
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
log=$(mktemp -d "${TMPDIR:-/tmp}/feedline-test.XXXXXX")
trap 'rm -rf "$log"' EXIT
# A calibration of this machine would change what runs of the tests burn.
export XDG_DATA_HOME=$log/data
unset FEEDLINE_CALIBRATION

passed=0
failed=0
summary=()

# rustfmt and clippy are parts of the toolchain that a minimal install leaves out.
toolchain() {
    local component bring
    for component in rustfmt:fmt clippy:clippy; do
        if cargo "${component#*:}" --version >/dev/null 2>&1; then continue; fi
        bring="rustup component add ${component%:*}"
        if command -v rustup >/dev/null; then
            echo "installing: $bring"
            $bring
        else
            echo "error: no cargo ${component#*:}; bring it with: $bring" >&2
            exit 2
        fi
    done
}

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

# Runs a command; where nobody watches, one that stands still is ended after so many minutes, and the parts
# behind it still run.
limited() {
    local minutes=$1
    shift
    if [[ -t 0 ]]; then
        "$@"
    else
        timeout --kill-after=10s "${minutes}m" "$@"
    fi
}

# Prints a heading, runs cargo test, adds up the "test result:" lines of all test programs.
rust_tests() {
    local name=$1 status=0 ok bad ignored
    shift
    echo "== $name"
    limited 30 cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$log/rust" || status=$?
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

# Checks licenses, sources and versions of all dependencies. cargo-deny takes 2.4 CPU minutes to build, once.
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

# What the tests of the preload library compile with, and the programs that they run under it.
preload_packages() {
    packages gcc libc6-dev liburing-dev git tar sqlite3 nodejs postgresql perl util-linux
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

# A workspace of its own, in the same target folder. Clippy runs as its compiler: `cargo clippy` would look
# at DataFusion and Ballista once more, which takes minutes.
sql_tests() {
    local manifest=crates/sql/Cargo.toml
    check "cargo fmt of sql" cargo fmt --manifest-path "$manifest" --check
    rust_tests "sql tests" --manifest-path "$manifest"
    check "clippy of sql" env RUSTC_WORKSPACE_WRAPPER=clippy-driver \
        CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ \
        cargo test --locked --no-run --manifest-path "$manifest"
}

makes_environments() {
    "${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null
}

# Makes sure that there is a Python that makes environments.
bring_python() {
    makes_environments || { packages python3 python3-venv && makes_environments; }
}

# The folder of an environment is named after what goes into it.
environment_id() {
    { "${PYTHON:-python3}" --version; cat "$@"; } | sha256sum | cut -c1-16
}

# Brings up the judges' Python environment.
judges_environment() {
    bring_python || return 1
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

# Brings up the environment of the judges that need PyTorch, or sets `reason`. Wheels are unpacked on the
# disk that was looked at, and no bytecode is made of what no test imports.
torch_environment() {
    local needed_mib=9216 free_mib
    if ! bring_python; then
        reason="no Python that makes environments"
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

# What the judges look at, all of it in one build so that no library is built twice.
judged_programs() {
    cargo build --locked --package feedline --bin feedline \
        --package feedline-checkpoint --example write --package feedline-trace --example known \
        --package feedline-report --example sample_report \
        --package feedline-formats --example read_samples &&
        cargo build --locked --package feedline-preload
}

# Runs the judges of a folder with a Python of theirs; pytest's own counts come from its XML report.
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
        # An empty run is a fault of the run, not a success.
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

# The real readers beside Feedline's under strace, and on file systems of their own, which only root can
# mount. They need both environments.
fidelity_tests() {
    echo "== fidelity"
    local reason=
    if [[ $(id -u) != 0 ]]; then
        summary+=("fidelity: NOT RUN, only root can mount; run it with: sudo -E make test")
    elif ! torch_environment; then
        summary+=("fidelity: NOT RUN, $reason; bring it with: make test-torch")
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
            summary+=("torch judges: NOT RUN, $reason; bring it with: make test-torch")
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
