"""How many kernels torch.profiler sees in the steps of torch_gpt.py: torch_count.py STEPS"""
import sys
import torch
from torch.profiler import ProfilerActivity as A, profile

WIDTH, BATCH, LAYERS = 512, 4, 6
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, dropout=0.1, device="cuda")
net = torch.nn.TransformerEncoder(layer, LAYERS).cuda()
optimizer = torch.optim.SGD(net.parameters(), 1e-3, foreach=False)
x = torch.randn(BATCH, 128, WIDTH, device="cuda")
with profile(activities=[A.CUDA]) as p:
    for _ in range(int(sys.argv[1])):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
events = [e for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA]
kernels = [e for e in events if not e.name.startswith(("Memcpy", "Memset"))]
print(f"torch.profiler: kernels {len(kernels)}, copies and sets {len(events) - len(kernels)} (the steps alone, not the set-up)")
