# What the tap records beyond kernels, copies and sets.

# Every kind at once: nothing crashes, and kernels are as many as in phase count.
phase_kinds() {
  "$gputap" record --kinds all --launches -o "$out/kinds" -- python3 "$kit/torch_gpt.py" --steps 100 >/dev/null
  echo "record exit $?"
  python3 "$here/figures.py" "$out/kinds"
  wc -l "$out"/kinds/*.csv
  for kind in sync memory,pool overhead runtime driver nvtx; do
    "$gputap" record --kinds "kernel,$kind" -o "$out/kind-$kind" -- python3 "$kit/torch_mixed.py" 1 40 >/dev/null 2>&1
    echo "$kind: record exit $?: $(wc -l "$out/kind-$kind"/*.csv | tr '\n' ' ')"
  done
}

# Graphs per node and as wholes.
phase_graphs() {
  nvcc -O2 -std=c++17 -arch=sm_90 "$here/soak.cu" -o "$work/soak"
  "$gputap" record -o "$out/nodes" -- "$work/soak" 1
  "$gputap" record --kinds kernel,graph -o "$out/graphs" -- "$work/soak" 1
  wc -l "$out"/nodes/*.csv "$out"/graphs/*.csv
}

# Which other kinds survive that they are switched off and on in a running job?
phase_switchkinds() {
  gcc -O1 -fPIC -shared "$here/backtrace.c" -o "$work/backtrace.so"
  gcc -O2 -fPIC -shared -I"$cuda/include" "$here/switch_probe.c" -o "$work/switch_probe.so" -L"$cupti_dir" -lcupti -lpthread
  local gpt="python3 $kit/torch_gpt.py --seconds ${SECONDS_EACH:-4}"
  export CUDA_INJECTION64_PATH=$work/switch_probe.so PERIOD_MS=40
  for kind in 38 49 50 17 5 4; do
    SWITCHED=$kind ALWAYS=10,1,2 FLUSH=po exits "switched-$kind" "${RUNS:-8}" 0 $gpt
  done
  unset CUDA_INJECTION64_PATH PERIOD_MS
}

# CUPTI on CLOCK_MONOTONIC through our callback, beside the wall clock: are the times right, and what does it cost?
phase_clocks() {
  for clock in wall monotonic; do
    GPUTAP_CLOCK=$clock "$gputap" record -o "$out/clock-$clock" -d 4 -- python3 "$kit/torch_gpt.py" --seconds 8 >/dev/null
    echo "$clock: record exit $?"
    python3 "$here/figures.py" "$out/clock-$clock" | head -n 1
  done
  for round in $(seq "${ROUNDS:-3}"); do
    for clock in wall monotonic; do
      GPUTAP_CLOCK=$clock paired "launch-$clock-$round" start stop "$work/launch_batches" "${BATCH_SECONDS:-8}" 1 >/dev/null
      echo "launch, $clock: $(pairs "launch-$clock-$round")"
    done
  done
  say "torch.profiler after a yield of a tap that read CLOCK_MONOTONIC:"
  GPUTAP_CLOCK=monotonic CUDA_INJECTION64_PATH=$(shim) GPUTAP_START=blackbox \
    GPUTAP_YIELD="$gputap ctl PID yield" GPUTAP_RESUME="$gputap ctl PID resume" \
    python3 "$kit/torch_yield.py" 2 2 2>&1 | tail -n 6
}
