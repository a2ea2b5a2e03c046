"""The freshness, the shim's own time and the counts of each process of a recording: figures.py DIR"""
import json, os, sys

ms = lambda ns: f"{ns / 1e6:.2f} ms"
for process in json.load(open(os.path.join(sys.argv[1], "index.json")))["processes"]:
    fresh, cost, counts, modules = (process[part] for part in ("freshness", "cost", "counts", "module_counts"))
    loads = modules["attempted"]
    if fresh:
        print("kernel end to reader: p50", ms(fresh["p50_ns"]), "p95", ms(fresh["p95_ns"]), "max", ms(fresh["max_ns"]))
    print(f"module callback: {loads} loads, mean", ms(cost["module_callback_ns"] / max(loads, 1)), "max", ms(cost["module_callback_max_ns"]))
    print(f"flush: {cost['flushes']}, mean", ms(cost["flush_ns"] / max(cost["flushes"], 1)), "max", ms(cost["flush_max_ns"]))
    print(f"completed buffers: {cost['buffers_completed']}, {cost['completed_ns'] / max(counts['attempted'], 1):.0f} ns an event")
    print("counts:", json.dumps(counts), "modules:", json.dumps(modules))
