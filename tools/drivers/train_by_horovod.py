"""Trains a network of three layers by Horovod, each rank on its own samples.

train_by_horovod.py HIDDEN BATCH STEPS. During the backward pass Horovod's thread collects gradients
that are ready in one buffer, and sums it by one blocking MPI_Allreduce."""

import sys
import time

import horovod.torch as hvd
import torch

hidden, batch, steps = (int(word) for word in sys.argv[1:])
hvd.init()
torch.set_num_threads(1)
torch.manual_seed(1)
layers = (784, hidden), (hidden, hidden), (hidden, 10)
modules = [module for layer in layers for module in (torch.nn.Linear(*layer), torch.nn.ReLU())]
model = torch.nn.Sequential(*modules[:-1])
plain = torch.optim.SGD(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
loss_of = torch.nn.CrossEntropyLoss()
generator = torch.Generator().manual_seed(2 + hvd.rank())
samples = torch.randn(batch, 784, generator=generator)
labels = torch.randint(0, 10, (batch,), generator=generator)


def train() -> float:
    optimizer.zero_grad()
    loss = loss_of(model(samples), labels)
    loss.backward()
    optimizer.step()
    return float(loss)


train()
hvd.barrier()
began = time.perf_counter()
losses = [train() for _ in range(steps)]
hvd.barrier()
seconds = time.perf_counter() - began
if hvd.rank() == 0:
    for number, loss in enumerate(losses):
        print(f"result loss-of-step-{number}", repr(loss))
    print("seconds", seconds)
