"""Does having recorded once cost anything afterwards? residual.py GPUTAP PID SECONDS RECORD

Leaves the process alone for SECONDS, records for a second (RECORD 1) or only waits as long (0), and leaves it alone for
SECONDS again. Prints "<monotonic ns> <phase>" lines; `residual.py --of MARKS SAMPLES` prints the medians before and after.
"""
import bisect, os, statistics, subprocess, sys, time

if sys.argv[1] == "--of":
    marks = [int(line.split()[0]) for line in open(sys.argv[2])]
    phases = [[] for _ in marks]
    for line in open(sys.argv[3]):
        at, cost = line.split()
        i = bisect.bisect(marks, int(at)) - 1
        if 0 <= i < len(marks) - 1 and int(at) - marks[i] > 100e6:
            phases[i].append(float(cost))
    before, after = statistics.median(phases[0]), statistics.median(phases[2])
    print(f"before {before:.0f} after {after:.0f} difference {after - before:+.0f} ns a launch")
    sys.exit()

gputap, pid, seconds, record = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] == "1"
ctl = lambda word: subprocess.run([gputap, "ctl", pid, word], capture_output=True).returncode == 0
mark = lambda phase: print(time.monotonic_ns(), phase, flush=True)
while os.path.exists(f"/proc/{pid}") and not ctl("stop"):
    time.sleep(0.05)
mark("before")
time.sleep(seconds)
if record:
    ctl("start")
mark("recording" if record else "waiting")
time.sleep(1)
ctl("stop")
mark("after")
time.sleep(seconds)
mark("end")
