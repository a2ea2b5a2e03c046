"""Switches a tap on and off while its process lives: toggle.py GPUTAP PID ON OFF

ON and OFF are commands of `gputap ctl`, told every PERIOD seconds (of the environment; 0.25). Prints "<monotonic ns> <on 0|1>" lines, as paired.py reads them.
"""
import os, subprocess, sys, time

gputap, pid, words = sys.argv[1], sys.argv[2], {1: sys.argv[3], 0: sys.argv[4]}
on, period = 0, float(os.environ.get("PERIOD", 0.25))
deadline = time.monotonic() + 20
while subprocess.run([gputap, "ctl", pid, words[on]], capture_output=True).returncode != 0 and time.monotonic() < deadline:
    time.sleep(0.05)  # The process has not reached cuInit yet.
while os.path.exists(f"/proc/{pid}"):
    done = subprocess.run([gputap, "ctl", pid, words[on]], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        break
    print(time.monotonic_ns(), on, flush=True)
    on = 1 - on
    time.sleep(period)
