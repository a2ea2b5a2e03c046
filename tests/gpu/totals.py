"""What the taps of ended processes had counted: totals.py GPUTAP"""
import json, subprocess, sys

taps = json.loads(subprocess.run([sys.argv[1], "ps", "--json"], capture_output=True, text=True, check=True).stdout)
taps = taps if isinstance(taps, list) else taps["taps"]
states = {}
for tap in taps:
    states[tap["state"]] = states.get(tap["state"], 0) + 1
print(f"taps {len(taps)}, states {states}, events {sum(t.get('attempted', 0) for t in taps)}, "
      f"modules {sum(t.get('modules', 0) for t in taps)}, cubin MB {sum(t.get('cubin_bytes', 0) for t in taps) / 1e6:.0f}")
