# What it costs, by switching inside one process (pairs.py) wherever that is possible.

pairs() { python3 "$here/pairs.py" "$work/$1.toggles" "$work/$1.samples" 2>&1 | tail -n 1; }

# Idle against yielded: 200 pairs.
phase_idle() {
  PERIOD=${PERIOD:-0.2} paired launch-idle-long resume yield "$work/launch_batches" "${BATCH_SECONDS:-68}" 1
  pairs launch-idle-long
}

# What a subscriber for module loads costs by itself, without and with buffers registered: CUPTI's floor of idling.
phase_subscriber() {
  gcc -O2 -fPIC -shared -I"$cuda/include" "$here/switch_probe.c" -o "$work/switch_probe.so" -L"$cupti_dir" -lcupti -lpthread
  for bare in ${BARE_TOO:+1} ""; do
    env ${bare:+BARE=1} LEAVE=1 SWITCHED= FLUSH=po PERIOD_MS=130 TOGGLE_LOG=$work/subscriber.toggles \
      CUDA_INJECTION64_PATH=$work/switch_probe.so "$work/launch_batches" "${BATCH_SECONDS:-40}" 1 >"$work/subscriber.samples" 2>/dev/null
    echo "subscriber${bare:+ alone}: $(pairs subscriber)"
  done
}

# Recording against not, and beside the probe shim, in alternating processes.
phase_launch() {
  for round in $(seq "${ROUNDS:-5}"); do
    paired "launch-recording-$round" start stop "$work/launch_batches" "${BATCH_SECONDS:-8}" 1 >/dev/null
    floor "launch-floor-$round" "$work/launch_batches" "${BATCH_SECONDS:-8}" 1 >/dev/null
    echo "launch $round: gputap $(pairs launch-recording-$round); floor $(pairs launch-floor-$round)"
  done
}

# A training step: switched by start and stop beside the floor; against a yielded tap; torch.profiler.
phase_gpt() {
  local gpt="python3 $kit/torch_gpt.py --seconds ${GPT_SECONDS:-10}"
  for round in $(seq "${ROUNDS:-5}"); do
    paired "gpt-recording-$round" start stop $gpt >/dev/null
    floor "gpt-floor-$round" $gpt >/dev/null
    echo "gpt $round: gputap $(pairs gpt-recording-$round); floor $(pairs gpt-floor-$round)"
  done
  for round in 1 2; do
    GPUTAP_START=blackbox PERIOD=0.5 paired "gpt-yielded-$round" resume yield $gpt >/dev/null
    echo "gpt, recording against yielded, $round: $(pairs gpt-yielded-$round)"
  done
  $gpt --profiler cuda 2>/dev/null | tail -n 1
}

# The module callback beside the probe's copy into populated memory, in alternating processes.
phase_module() {
  sed -e 's/^static atomic_int stopping;/static char *arena; static atomic_ulong used; static atomic_int stopping;/' \
    -e 's/void \*copy = malloc(m->cubinSize);/void *copy = arena + atomic_fetch_add(\&used, (m->cubinSize + 63) \& ~63ul);/' \
    -e 's/^  free(copy);//' -e 's/^  const char \*mode = /  arena = mmap(0, 1 << 29, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);\n&/' \
    -e 's/^#include <unistd.h>/&\n#include <sys\/mman.h>/' "$kit/probe_shim.c" >"$work/populated_shim.c"
  gcc -O2 -fPIC -shared -I"$cuda/include" "$work/populated_shim.c" -o "$work/populated_shim.so" -L"$cupti_dir" -lcupti -lpthread
  for round in $(seq "${ROUNDS:-5}"); do
    CUDA_INJECTION64_PATH=$work/populated_shim.so python3 "$kit/torch_gpt.py" --steps 20 2>&1 >/dev/null | grep -o 'modules=.*module_us_max=[0-9.]*'
    rm -rf "$out/module" && "$gputap" record -o "$out/module" -- python3 "$kit/torch_gpt.py" --steps 20 >/dev/null 2>&1
    python3 "$here/figures.py" "$out/module" | grep 'module callback'
  done
}

# Does having recorded once cost anything afterwards? A wait as long is the control.
phase_residual() {
  for round in $(seq "${RESIDUAL_ROUNDS:-3}"); do
    for record in 1 0; do
      CUDA_INJECTION64_PATH=$(shim) "$work/launch_batches" 10 1 >"$work/residual.samples" &
      local job=$!
      python3 "$here/residual.py" "$gputap" $job 3.5 $record >"$work/residual.marks"
      wait $job
      echo "recorded=$record: $(python3 "$here/residual.py" --of "$work/residual.marks" "$work/residual.samples")"
    done
  done
}

# The timer thread's time at a rate of kernels that a training job has, by the scheduler's own account.
phase_timer() {
  CUDA_INJECTION64_PATH=$(shim) GPUTAP_START=blackbox python3 "$kit/torch_gpt.py" --seconds 14 >/dev/null &
  local job=$! thread before after
  sleep 10
  thread=$(grep -l gputap-timer /proc/$job/task/*/comm | head -n 1 | xargs dirname)
  before=$(cut -d' ' -f1 "$thread/schedstat") events=$(attempted $job)
  sleep 5
  after=$(cut -d' ' -f1 "$thread/schedstat")
  echo "timer thread: $(((after - before) / 1000)) us in 5 s; events in that time: $(($(attempted $job) - events))"
  "$gputap" ps
  wait $job
}

attempted() { "$gputap" ps --json | python3 -c "import json,sys; t=json.load(sys.stdin); t=t if isinstance(t,list) else t['taps']; print(next((x['attempted'] for x in t if x['pid']==$1), 0))"; }
