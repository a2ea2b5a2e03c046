# What it costs, further.

# Idle against yielded, 200 pairs.
phase_idle() {
  paired launch-idle-long resume yield "$work/launch_batches" "${BATCH_SECONDS:-110}" 1
}

# Does having recorded once cost anything afterwards? A wait as long is the control.
phase_residual() {
  for round in $(seq "${ROUNDS:-5}"); do
    for record in 1 0; do
      CUDA_INJECTION64_PATH=$(shim) "$work/launch_batches" 14 1 >"$work/residual.samples" &
      local job=$!
      python3 "$here/residual.py" "$gputap" $job 5 $record >"$work/residual.marks"
      wait $job
      echo "recorded=$record: $(python3 "$here/residual.py" --of "$work/residual.marks" "$work/residual.samples")"
    done
  done
}


# The timer thread's time at a rate of kernels that a training job has.
phase_timer() {
  CUDA_INJECTION64_PATH=$(shim) GPUTAP_START=blackbox python3 "$kit/torch_gpt.py" --seconds 20 >/dev/null &
  local job=$! thread before after
  sleep 14
  thread=$(grep -l gputap-timer /proc/$job/task/*/comm | head -n 1 | xargs dirname)
  before=$(awk '{print $14 + $15}' "$thread/stat")
  sleep 4
  after=$(awk '{print $14 + $15}' "$thread/stat")
  echo "timer thread: $((after - before)) ticks of 10 ms in 4 s"
  "$gputap" ps
  wait $job
}
