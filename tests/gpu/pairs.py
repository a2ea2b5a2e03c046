"""The median difference of disjoint neighbouring stretches, with its 95 % interval (bootstrap): pairs.py TOGGLES SAMPLES

As paired.py of the kit reads them; each stretch serves one pair only, so that the pairs are independent. The last 60 ms of a
stretch are left out: the command that ends it is on its way then, and what it does costs launches.
"""
import bisect, random, statistics, sys

toggles = [tuple(map(int, line.split())) for line in open(sys.argv[1])]
times = [at for at, _ in toggles]
stretches = {}
for line in open(sys.argv[2]):
    at, cost = line.split()
    i = bisect.bisect(times, int(at)) - 1
    if 0 <= i < len(times) - 1 and int(at) - times[i] > 20e6 and times[i + 1] - int(at) > 60e6:
        stretches.setdefault(i, []).append(float(cost))
medians = {i: statistics.median(costs) for i, costs in stretches.items() if len(costs) > 5}
differences, off, i = [], [], 0
while i < len(toggles):
    if i in medians and i + 1 in medians:
        pair = {toggles[i][1]: medians[i], toggles[i + 1][1]: medians[i + 1]}
        differences.append(pair[1] - pair[0])
        off.append(pair[0])
        i += 1
    i += 1
rng = random.Random(1)
again = sorted(statistics.median(rng.choices(differences, k=len(differences))) for _ in range(4000))
middle = statistics.median(differences)
print(f"{middle:.0f} (95 % {again[100]:.0f} to {again[3899]:.0f}) of {statistics.median(off):.0f}, "
      f"{100 * middle / statistics.median(off):+.2f} %, {len(differences)} pairs")
