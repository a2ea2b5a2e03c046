"""Kernels by torch.profiler beside those of a recording: compare_kernels.py PROFILER.json REPORT.json

REPORT is `gputap report DIR --json`. Counts of every kernel must be equal; mean GPU times of those above 1 % of the total
within 5 %. Exact names are demangled by c++filt, as torch.profiler does it, and compared without their spaces.
"""
import json, subprocess, sys

profiler = {name: entry for name, entry in json.load(open(sys.argv[1])).items()}
report = json.load(open(sys.argv[2]))
plain = lambda name: "".join(name.split())
ours = {}
exact = "\n".join(row["mangled"] for row in report["kernels"])
readable = subprocess.run(["c++filt"], input=exact, capture_output=True, text=True, check=True).stdout.splitlines()
for row, name in zip(report["kernels"], readable):
    calls, total = ours.get(plain(name), (0, 0))
    ours[plain(name)] = (calls + row["calls"], total + row["total_ns"])
theirs = {plain(name): (calls, calls * mean) for name, (calls, mean) in profiler.items()}
whole = sum(total for _, total in theirs.values())
print(f"kernels: torch.profiler {sum(c for c, _ in theirs.values())}, gputap {sum(c for c, _ in ours.values())}; names {len(theirs)}, {len(ours)}")
worst, unequal = 0, []
for name, (calls, total) in sorted(theirs.items(), key=lambda kernel: -kernel[1][1]):
    our_calls, our_total = ours.get(name, (0, 0))
    if calls != our_calls:
        unequal.append((name[:60], calls, our_calls))
    elif total > whole / 100:
        off = (our_total / our_calls) / (total / calls) - 1
        worst = max(worst, abs(off), key=abs)
        print(f"{100 * total / whole:5.1f} % {calls:6} calls, mean {total / calls:8.0f} ns by torch.profiler, {100 * off:+.2f} % {name[:70]}")
print(f"unequal counts: {unequal}; largest difference of means {100 * worst:.2f} %")
