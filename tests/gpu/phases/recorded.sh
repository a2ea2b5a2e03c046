# Recordings: sizes, exports, and the same steps by torch.profiler.

phase_recorded() {
  rm -rf "$out/gpt" "$out/mixed"
  "$gputap" record --kinds kernel,memcpy,memset,memory,runtime,nvtx --launches -o "$out/gpt-all" -- python3 "$kit/torch_gpt.py" --steps 100 >/dev/null
  "$gputap" record -o "$out/gpt" -- python3 "$here/torch_kernels.py" 100 >/dev/null
  python3 "$here/torch_kernels.py" 100 "$work/profiler.json" 2>/dev/null
  "$gputap" record -o "$out/mixed" -- python3 "$kit/torch_mixed.py" 1 60 >/dev/null 2>&1
  for run in gpt gpt-all mixed; do
    "$gputap" report "$out/$run" --json >"$out/$run.json"
    du -b --exclude=cubins "$out/$run"
    for format in perfetto chrome parquet pprof csv json; do
      rm -rf "$work/export.$format"
      "$gputap" export "$out/$run" --to $format -o "$work/export.$format"
    done
  done
  "$gputap" report "$out/gpt" --rows 12
  "$gputap" cubins "$out/gpt" | head -n 8
  python3 "$here/compare_kernels.py" "$work/profiler.json" "$out/gpt.json"
  "$gputap" record -o "$out/sample" -- python3 "$kit/torch_gpt.py" --steps 5 >/dev/null 2>&1
  tar czf "$out/recorded.tgz" -C "$out" --exclude=cubins sample gpt gpt-all mixed
}
