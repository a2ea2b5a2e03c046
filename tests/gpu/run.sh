#!/usr/bin/env bash
# run.sh KIT BIN OUT PHASE...   See README.md beside this.
set -u
kit=$(realpath "$1") bin=$(realpath "$2") out=$(realpath -m "$3")
here=$(dirname "$(realpath "$0")")
shift 3
mkdir -p "$out"
work=${GPUTAP_GPU_WORK:-/tmp/gputap-gpu}
mkdir -p "$work"
gputap=$bin/gputap
cuda=${CUDA_HOME:-/usr/local/cuda}
cupti_dir=$cuda/targets/x86_64-linux/lib
[ -e "$cupti_dir/libcupti.so" ] || cupti_dir=$cuda/extras/CUPTI/lib64
export PYTHONUNBUFFERED=1 LD_LIBRARY_PATH=$cupti_dir:${LD_LIBRARY_PATH:-} XDG_CACHE_HOME=$work/cache
say() { echo "[$(date +%T)] $*"; }
shim() { "$gputap" env --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["CUDA_INJECTION64_PATH"])'; }

phase_build() {
  cd "$work" || exit 1
  nvcc -O2 -lineinfo -arch=sm_90 -cubin "$kit/kernels.cu" -o kernels.cubin &
  nvcc -O2 -std=c++17 -arch=sm_90 "$kit/lazy_load.cu" -o lazy_load -lcuda &
  nvcc -O2 -std=c++17 -arch=sm_90 "$kit/launch_batches.cu" -o launch_batches &
  gcc -O2 -fPIC -shared -I"$cuda/include" "$kit/probe_shim.c" -o probe_shim.so -L"$cupti_dir" -lcupti -lpthread &
  wait
  ls -la "$work"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  ldd --version | head -n 1
  df -h /dev/shm | tail -n 1
  "$gputap" --version
  "$gputap" doctor
  echo "doctor exit $?"
}

# batch NAME RUNS AT_ONCE SECONDS COMMAND...: exit codes of RUNS runs, AT_ONCE in parallel; 124 is a hang.
batch() {
  local name=$1 runs=$2 at_once=$3 limit=$4
  shift 4
  local log=$work/batch-$name
  rm -rf "$log" && mkdir -p "$log"
  seq "$runs" | xargs -P "$at_once" -I{} sh -c \
    'timeout -s KILL '"$limit"' "$@" >'"$log"'/{}.out 2>&1; echo $? >'"$log"'/{}.rc' sh "$@"
  local hung ok
  hung=$(cat "$log"/*.rc | grep -cE '^(124|137)$')
  ok=$(cat "$log"/*.rc | grep -c '^0$')
  echo "$name: runs $runs, finished $ok, hung $hung, failed $((runs - ok - hung)); first: $(tail -n 1 "$log/1.out")"
  for rc in $(grep -LE '^(0|124|137)$' "$log"/*.rc | head -n 3); do
    echo "--- exit $(cat "$rc")" && tail -n 8 "${rc%.rc}.out"
  done
}

phase_naive() {
  export CUDA_MODULE_LOADING=LAZY
  CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=naive FLUSH_US=1000 \
    batch naive-lazy_load 4 4 12 "$work/lazy_load" 4 3 "$work/kernels.cubin"
  CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=floor FLUSH_US=1000 \
    batch floor-lazy_load 4 4 12 "$work/lazy_load" 4 3 "$work/kernels.cubin"
}

phase_stress() {
  export CUDA_MODULE_LOADING=LAZY CUDA_INJECTION64_PATH GPUTAP_FLUSH_MS=1 GPUTAP_START=blackbox
  CUDA_INJECTION64_PATH=$(shim)
  batch gputap-lazy_load 20 5 20 "$work/lazy_load" 4 3 "$work/kernels.cubin"
  "$gputap" ps | head -n 12
  batch gputap-torch_mixed 20 7 120 python3 "$kit/torch_mixed.py" 1 60
  python3 "$here/totals.py" "$gputap" || true
  "$gputap" clean
  unset CUDA_INJECTION64_PATH GPUTAP_FLUSH_MS GPUTAP_START
}

phase_count() {
  for mode in floor; do
    CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=$mode python3 "$kit/torch_gpt.py" --steps 100 2>&1 >/dev/null | grep '^probe'
  done
  "$gputap" record -o "$out/gpt" -- python3 "$kit/torch_gpt.py" --steps 100 >/dev/null
  echo "record exit $?"
  python3 "$here/figures.py" "$out/gpt"
  python3 "$here/torch_count.py" 100
  python3 "$here/check_recording.py" "$out/gpt" "$cupti_dir/libcupti.so"
}

phase_attach() {
  CUDA_INJECTION64_PATH=$(shim) python3 "$kit/torch_gpt.py" --seconds 25 >/dev/null &
  local job=$!
  sleep 14
  "$gputap" ps
  "$gputap" top -p $job --seconds 2
  "$gputap" record -p $job -o "$out/late" -d 3
  echo "record -p exit $?"
  wait $job
  echo "job exit $?"
  python3 "$here/check_recording.py" "$out/late" "$cupti_dir/libcupti.so"
}

phase_yield() {
  export CUDA_INJECTION64_PATH
  CUDA_INJECTION64_PATH=$(shim)
  say "without yielding, while gputap records:"
  GPUTAP_START=blackbox GPUTAP_YIELD="$gputap ps" GPUTAP_RESUME="$gputap ps" \
    python3 "$kit/torch_yield.py" 2 2 2>&1 | grep -vi warning | tail -n 8
  "$gputap" ps
  say "with gputap ctl yield before and resume after:"
  GPUTAP_START=blackbox GPUTAP_YIELD="$gputap ctl PID yield; $gputap ps" GPUTAP_RESUME="$gputap ctl PID resume; true" \
    python3 "$kit/torch_yield.py" 2 2 2>&1 | tail -n 12
  say "the same with TEARDOWN_CUPTI=1, resumed a second later, while the job works on:"
  TEARDOWN_CUPTI=1 GPUTAP_START=blackbox GPUTAP_YIELD="$gputap ctl PID yield" \
    GPUTAP_RESUME="(sleep 1; $gputap ctl PID resume; sleep 1; $gputap ps) &" \
    python3 "$kit/torch_yield.py" 2 4 2>&1 | tail -n 12
  unset CUDA_INJECTION64_PATH
}

phase_fresh() {
  "$gputap" record -o "$out/fresh" -d 12 -- python3 "$kit/torch_gpt.py" --seconds 18 --sync-every 200 >/dev/null
  echo "record exit $?"
  python3 "$here/figures.py" "$out/fresh"
}

phase_jax() {
  "$gputap" record -o "$out/jax" -- python3 "$kit/jax_train.py" 1000
  echo "record exit $?"
  python3 "$here/check_recording.py" "$out/jax" "$cupti_dir/libcupti.so"
}

phase_view() {
  CUDA_INJECTION64_PATH=$(shim) python3 "$kit/torch_gpt.py" --seconds 24 >/dev/null &
  local job=$!
  sleep 13
  TERM=xterm-256color script -q -c "stty cols 130 rows 32; '$gputap' top -p $job --seconds 7" "$out/view.typescript" >/dev/null </dev/null
  wait $job
  ls -la "$out/view.typescript"
}

# exits NAME RUNS SWITCHED COMMAND...: RUNS of COMMAND at once, SWITCHED on and off by gputap ctl (1) or not (0); who crashed.
exits() {
  local name=$1 runs=$2 switched=$3 log=$work/exits-$1
  shift 3
  rm -rf "$log" && mkdir -p "$log"
  for i in $(seq "$runs"); do
    (
      LD_PRELOAD=$work/backtrace.so "$@" >/dev/null 2>"$log/$i.err" &
      job=$!
      [ "$switched" = 0 ] || python3 "$here/toggle.py" "$gputap" $job start stop >"$log/$i.toggles" 2>/dev/null
      wait $job
      echo $? >"$log/$i.rc"
    ) &
  done
  wait
  echo "$name: runs $runs, exit codes: $(cat "$log"/*.rc | sort | uniq -c | tr '\n' ';') last switched: $(tail -qn 1 "$log"/*.toggles 2>/dev/null | cut -d' ' -f2 | tr '\n' ' ')"
  for i in $(seq "$runs"); do
    [ "$(cat "$log/$i.rc")" = 0 ] || { echo "--- $name $i, exit $(cat "$log/$i.rc"), last switched $(tail -n 1 "$log/$i.toggles" 2>/dev/null)"; tail -n 30 "$log/$i.err"; }
  done | head -n 120
}

# As phase_exits, gputap alone: 3 x RUNS processes that readers come to and go from.
phase_switched() {
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  export CUDA_INJECTION64_PATH
  CUDA_INJECTION64_PATH=$(shim)
  for round in 1 2 3; do
    exits gputap-switched-$round "${RUNS:-10}" 1 python3 "$kit/torch_gpt.py" --seconds 4
  done
  unset CUDA_INJECTION64_PATH
}

phase_exits() {
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  local gpt="python3 $kit/torch_gpt.py --seconds 4"
  exits untapped 8 0 $gpt
  CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=floor exits probe-steady 8 0 $gpt
  CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=floor FLUSH_US=250000 TOGGLE_LOG=/dev/null exits probe-switching 8 0 $gpt
  export CUDA_INJECTION64_PATH
  CUDA_INJECTION64_PATH=$(shim)
  GPUTAP_START=blackbox exits gputap-steady 8 0 $gpt
  exits gputap-switching 8 1 $gpt
  exits gputap-idle 8 0 $gpt
  unset CUDA_INJECTION64_PATH
}

# Which way of switching does CUPTI survive? Seconds and runs by RUNS and SECONDS.
phase_switching() {
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  gcc -O2 -fPIC -shared -I"$cuda/include" "$here/switch_probe.c" -o "$work/switch_probe.so" -L"$cupti_dir" -lcupti -lpthread
  local gpt="python3 $kit/torch_gpt.py --seconds ${SECONDS_EACH:-4}" runs=${RUNS:-8}
  export CUDA_INJECTION64_PATH=$work/switch_probe.so PERIOD_MS=${PERIOD_MS:-40}
  case ${WAYS:-all} in
    all)
      SWITCHED=10,1,2 FLUSH=poa exits sw-all-flush "$runs" 0 $gpt
      SWITCHED=10,1,2 FLUSH= exits sw-all-noflush "$runs" 0 $gpt
      SWITCHED=10,1,2 FLUSH=p exits sw-all-flush-while-on "$runs" 0 $gpt
      SWITCHED=10 ALWAYS=1,2 FLUSH=poa exits sw-kernel-only "$runs" 0 $gpt
      SWITCHED=1,2 ALWAYS=10 FLUSH=poa exits sw-copies-only "$runs" 0 $gpt
      SWITCHED=10 FLUSH=poa exits sw-kernel-alone "$runs" 0 $gpt
      SWITCHED=10,1,2 ALWAYS=17 FLUSH=poa exits sw-all-overhead-stays "$runs" 0 $gpt
      SWITCHED=10,1,2 FLUSH=pof exits sw-all-forced-before "$runs" 0 $gpt
      LEAVE=1 SWITCHED=10,1,2 FLUSH=p PERIOD_MS=200 exits sw-leave "$runs" 0 $gpt
      ;;
    few)
      SWITCHED=1 ALWAYS=10,2 FLUSH=po exits sw-memcpy "$runs" 0 $gpt
      SWITCHED=1 ALWAYS=10,2 FLUSH=po exits sw-memcpy-2 "$runs" 0 $gpt
      SWITCHED=10 ALWAYS=1,2 FLUSH=po exits sw-kernel "$runs" 0 $gpt
      SWITCHED=10 ALWAYS=1,2 FLUSH=po exits sw-kernel-2 "$runs" 0 $gpt
      SWITCHED=10 ALWAYS=1,2 FLUSH=po exits sw-kernel-3 "$runs" 0 $gpt
      SWITCHED=1,2 ALWAYS=10 FLUSH=po ONCE=1 DELAY_MS=2500 exits sw-late-once "$runs" 0 $gpt
      for round in 1 2 3; do
        SWITCHED=1,2 PERIOD_MS=250 TOGGLE_LOG=$work/copies-on-$round.toggles "$work/launch_batches" 8 1 >"$work/copies-on-$round.samples" 2>/dev/null
        echo "launches with copies and sets on: $(python3 "$kit/paired.py" "$work/copies-on-$round.toggles" "$work/copies-on-$round.samples")"
      done
      ;;
  esac
  unset CUDA_INJECTION64_PATH
  for log in "$work"/exits-sw-*; do
    echo "$(basename "$log"): $(grep -h '^switch probe' "$log"/*.err | head -n 1)"
  done
}

# Does CUPTI survive that it gets no buffer, and does it count what it drops? 47,986 records in all (phase count).
phase_refusing() {
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  gcc -O2 -fPIC -shared -I"$cuda/include" "$here/switch_probe.c" -o "$work/switch_probe.so" -L"$cupti_dir" -lcupti -lpthread
  export CUDA_INJECTION64_PATH=$work/switch_probe.so
  ALWAYS=10,1,2 FLUSH=po NULL_EVERY=7 exits refusing 8 0 python3 "$kit/torch_gpt.py" --steps 100
  grep -h '^switch probe:' "$work"/exits-refusing/*.err
  ALWAYS=10,1,2 FLUSH=po NULL_EVERY=3 exits refusing-lazy 4 0 "$work/lazy_load" 4 2 "$work/kernels.cubin"
  grep -h '^switch probe:' "$work"/exits-refusing-lazy/*.err
  unset CUDA_INJECTION64_PATH
}

# paired NAME ON OFF COMMAND...: one process, `gputap ctl` ON and OFF in turns; the samples of COMMAND paired.
paired() {
  local name=$1 on=$2 off=$3
  shift 3
  CUDA_INJECTION64_PATH=$(shim) "$@" >"$work/$name.samples" &
  local job=$!
  python3 "$here/toggle.py" "$gputap" $job "$on" "$off" >"$work/$name.toggles" 2>"$work/$name.toggle-errors"
  wait $job
  echo "$name: $(python3 "$kit/paired.py" "$work/$name.toggles" "$work/$name.samples" 2>&1 | tail -n 1)"
}

# floor NAME COMMAND...: the same with the probe shim, which switches by itself.
floor() {
  local name=$1
  shift
  CUDA_INJECTION64_PATH=$work/probe_shim.so MODE=floor FLUSH_US=250000 TOGGLE_LOG=$work/$name.toggles \
    "$@" >"$work/$name.samples" 2>"$work/$name.probe"
  grep '^probe' "$work/$name.probe"
  echo "$name: $(python3 "$kit/paired.py" "$work/$name.toggles" "$work/$name.samples" 2>&1 | tail -n 1)"
}

for file in "$here"/phases/*.sh; do
  . "$file"
done
for phase in "$@"; do
  say "== $phase"
  "phase_$phase"
done
