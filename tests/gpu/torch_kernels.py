"""The steps of torch_gpt.py with their set-up, for torch.profiler and a tap alike: torch_kernels.py STEPS [FILE]

With FILE torch.profiler records all of it, and FILE gets {kernel's name: [calls, mean GPU time in ns]} as JSON.
"""
import contextlib, json, sys
import torch
from torch.profiler import ProfilerActivity as A, profile

WIDTH, BATCH, LAYERS = 512, 4, 6
steps, file = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
torch.cuda.init()


def train():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, dropout=0.1, device="cuda")
    net = torch.nn.TransformerEncoder(layer, LAYERS).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 1e-3, foreach=False)
    x = torch.randn(BATCH, 128, WIDTH, device="cuda")
    for _ in range(steps):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()


with profile(activities=[A.CUDA]) if file else contextlib.nullcontext() as p:
    train()
if file:
    kernels = {}
    for event in p.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("Memcpy", "Memset")):
            kernels.setdefault(event.name, []).append(event.time_range.elapsed_us() * 1000)
    json.dump({name: [len(times), sum(times) / len(times)] for name, times in kernels.items()}, open(file, "w"))
    print("torch.profiler kernels", sum(len(times) for times in kernels.values()))
