# Hangs and crashes, in every way that a platform team will meet.

phase_matrix() {
  export CUDA_MODULE_LOADING=LAZY CUDA_INJECTION64_PATH GPUTAP_START=blackbox GPUTAP_FLUSH_MS
  CUDA_INJECTION64_PATH=$(shim)
  for GPUTAP_FLUSH_MS in 0.2 10; do
    for threads in ${THREADS:-1 4 8}; do
      batch "lazy_load-$threads-flush-$GPUTAP_FLUSH_MS" "${RUNS:-20}" 5 20 "$work/lazy_load" "$threads" 2 "$work/kernels.cubin"
    done
  done
  GPUTAP_FLUSH_MS=0.2 batch dataloader 20 5 60 python3 "$here/dataloader.py" 3
  XLA_PYTHON_CLIENT_PREALLOCATE=false batch jax_train 20 5 90 python3 "$kit/jax_train.py" 200
  unset CUDA_MODULE_LOADING CUDA_INJECTION64_PATH GPUTAP_START GPUTAP_FLUSH_MS
  "$gputap" clean
}

# told NAME RUNS AT_ONCE PERIOD ON OFF COMMAND...: RUNS of COMMAND, told ON and OFF by gputap ctl every PERIOD seconds.
told() {
  local name=$1 runs=$2 at_once=$3 period=$4 on=$5 off=$6 log=$work/told-$1
  shift 6
  rm -rf "$log" && mkdir -p "$log"
  seq "$runs" | PERIOD=$period xargs -P "$at_once" -I{} bash -c '
    log=$1 here=$2 gputap=$3 on=$4 off=$5; shift 5
    timeout -s KILL 60 "$@" >"$log/{}.out" 2>&1 & job=$!
    while child=$(pgrep -P $job | head -n 1); [ -z "$child" ] && kill -0 $job 2>/dev/null; do sleep 0.02; done
    python3 "$here/toggle.py" "$gputap" "$child" "$on" "$off" >"$log/{}.toggles" 2>/dev/null
    wait $job; echo $? >"$log/{}.rc"' bash "$log" "$here" "$gputap" "$on" "$off" "$@"
  local hung ok
  hung=$(cat "$log"/*.rc | grep -cE '^(124|137)$')
  ok=$(cat "$log"/*.rc | grep -c '^0$')
  echo "$name: runs $runs, finished $ok, hung $hung, failed $((runs - ok - hung)), told $(cat "$log"/*.toggles | wc -l) times"
}

phase_told() {
  export CUDA_MODULE_LOADING=LAZY CUDA_INJECTION64_PATH
  CUDA_INJECTION64_PATH=$(shim)
  told start-stop 20 5 0.005 start stop "$work/lazy_load" 4 3 "$work/kernels.cubin"
  told yield-resume 20 5 0.2 resume yield "$work/lazy_load" 4 3 "$work/kernels.cubin"
  unset CUDA_MODULE_LOADING CUDA_INJECTION64_PATH
}

# 30 million kernels, half of them in graphs: what was lost, and does anything grow? Beside the probe shim (also with plain
# launches only, and with graphs only) and no shim.
phase_soak() {
  nvcc -O2 -std=c++17 -arch=sm_90 "$here/soak.cu" -o "$work/soak"
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  local name jobs=() pids=() soak="timeout -s KILL ${LIMIT:-120} env LD_PRELOAD=$work/backtrace.so $work/soak ${MILLIONS:-30}"
  for name in ${TAPS:-gputap-1 gputap-2 floor-1 floor-plain floor-graphs untapped}; do
    case $name in
      gputap*) CUDA_INJECTION64_PATH=$(shim) $soak >"$work/soak-$name.out" 2>&1 & ;;
      floor*) CUDA_INJECTION64_PATH=$work/probe_shim.so $soak "${name#floor-}" >"$work/soak-$name.out" 2>&1 & ;;
      *) $soak >"$work/soak-$name.out" 2>&1 & ;;
    esac
    pids+=($!)
    sleep 1
    local job=$(pgrep -P $!)
    jobs+=("$name=$job")
    case $name in gputap*) "$gputap" top -p "$job" --seconds 100000 >"$out/$name.top" 2>&1 & jobs+=("reader-$name=$!") ;; esac
  done
  python3 "$here/growth.py" "${LIMIT:-120}" "${jobs[@]}"
  for name in ${TAPS:-gputap-1 gputap-2 floor-1 floor-plain floor-graphs untapped}; do
    wait "${pids[0]}"
    echo "$name: exit $?: $(tail -n 24 "$work/soak-$name.out")"
    pids=("${pids[@]:1}")
    [ -e "$out/$name.top" ] && tail -n 4 "$out/$name.top"
  done
}
