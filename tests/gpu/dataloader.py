"""A training loop fed by forked DataLoader workers: dataloader.py SECONDS"""
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.full((64,), float(index))


model = torch.nn.Linear(64, 64).cuda()
loader = DataLoader(Numbers(), batch_size=64, num_workers=4, multiprocessing_context="fork")
end, steps = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    for batch in loader:
        model(batch.cuda(non_blocking=True)).sum().backward()
        steps += 1
        if time.monotonic() > end or steps % 200 == 0:
            break
torch.cuda.synchronize()
print("steps", steps)
