#!/usr/bin/env bash
# Installs the peers that `make bench` compares Feedline with: DLIO 2.0.0 with PyTorch, safetensors,
# two S3 clients (s3torchconnector's and s3dlio), DFTracer, and DFTracer's analyzer.
# usage: bench/peers.sh FOLDER      (about 6 GB on disk; CPython 3.11 to 3.13; safe to repeat)
set -euo pipefail

folder=${1:?usage: bench/peers.sh FOLDER}
python=${PYTHON:-python3}
venv=$folder/dlio

pins=(
    torch==2.15.0
    safetensors==0.8.0
    mpi4py==4.1.2
    hydra-core==1.3.8
    omegaconf==2.3.1
    numpy==2.4.6
    pandas==3.1.1
    psutil==7.2.2
    h5py==3.16.0
    Pillow==13.0.0
    PyYAML==6.0.3
)
# Without their dependencies: DLIO asks for NVIDIA DALI, whose package fetches itself from elsewhere.
bare_pins=(dlio-benchmark==2.0.0 pydftracer==1.0.2)

missing=()
command -v mpirun >/dev/null || missing+=(openmpi-bin)
command -v strace >/dev/null || missing+=(strace)
command -v fio >/dev/null || missing+=(fio)
[[ -x /usr/bin/time ]] || missing+=(time)
"$python" -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
if ((${#missing[@]})); then
    bring="apt-get install -y --no-install-recommends ${missing[*]}"
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        echo "installing ${missing[*]}"
        apt-get update -qq
        $bring -qq >/dev/null
    else
        echo "error: ${missing[*]} missing; install it with: sudo $bring" >&2
        exit 2
    fi
fi

# Packages in an environment of their own; installed again when the pins change.
# usage: environment NAME PIN...
environment() {
    local place=$folder/$1
    shift
    if [[ -e $place/complete && $(<"$place/complete") == "$*" ]]; then return; fi
    echo "installing into $place: $*"
    mkdir -p "$folder"
    "$python" -m venv "$place"
    "$place/bin/pip" --disable-pip-version-check --quiet install "$@"
    echo "$*" >"$place/complete"
}

environment s3 s3torchconnectorclient==1.5.0 s3dlio==0.10.0
environment dftracer dftracer==2.2.0 dftracer-utils==0.0.14 pydftracer==2.0.6 numpy==2.4.6
# The analyzer starts with this version of the tools alone, which reads traces of DFTracer before 2.1.1.
environment dfanalyzer dftracer-analyzer==0.0.9 dftracer-utils==0.0.12 dask==2026.8.0 \
    pandas==2.3.3 pyarrow==26.0.1 numpy==2.4.6 hydra-core==1.3.8 omegaconf==2.3.1

wanted=$(printf '%s\n' "${pins[@]}" "${bare_pins[@]}")
if [[ -e $venv/complete && $(<"$venv/complete") == "$wanted" ]]; then
    echo "already there: $venv"
    exit 0
fi

echo "installing into $venv: ${pins[*]} ${bare_pins[*]}"
mkdir -p "$folder"
"$python" -m venv "$venv"
pip=("$venv/bin/pip" --disable-pip-version-check --quiet)
"${pip[@]}" install "${pins[@]}"
# A compiler for GPU kernels, 1 GB, imported by nothing that DLIO does.
"${pip[@]}" uninstall --yes triton
"${pip[@]}" install --no-deps "${bare_pins[@]}"

# DLIO imports TensorFlow at start for one of its profilers, whatever the framework of the job.
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo '"""Stands in for TensorFlow in jobs that do not use it."""' >"$site/tensorflow.py"

OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    "$venv/bin/dlio_benchmark" --cfg job >/dev/null
echo "$wanted" >"$venv/complete"
echo "installed: DLIO 2.0.0 with PyTorch"
echo "left out: TensorFlow (tfrecord jobs) and NVIDIA DALI; make bench compares npz with PyTorch"
