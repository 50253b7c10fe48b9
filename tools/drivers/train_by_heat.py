"""Trains a network of three layers by Heat's DataParallel, each rank on its own samples.

train_by_heat.py HIDDEN BATCH STEPS. Gradients are summed by one MPI_Iallreduce for the weights and
one for the biases of each layer. They are waited for where the next forward pass needs the layer,
as Heat does by default."""

import sys
import time

import heat as ht
import torch

hidden, batch, steps = (int(word) for word in sys.argv[1:])
torch.set_num_threads(1)
torch.manual_seed(1)
layers = (784, hidden), (hidden, hidden), (hidden, 10)
modules = [module for layer in layers for module in (torch.nn.Linear(*layer), torch.nn.ReLU())]
model = torch.nn.Sequential(*modules[:-1])
optimizer = ht.optim.DataParallelOptimizer(torch.optim.SGD(model.parameters(), lr=0.01))
network = ht.nn.DataParallel(model, ht.MPI_WORLD, optimizer)
loss_of = torch.nn.CrossEntropyLoss()
generator = torch.Generator().manual_seed(2 + ht.MPI_WORLD.rank)
samples = torch.randn(batch, 784, generator=generator)
labels = torch.randint(0, 10, (batch,), generator=generator)


def train() -> float:
    optimizer.zero_grad()
    loss = loss_of(network(samples), labels)
    loss.backward()
    optimizer.step()
    return float(loss)


train()
ht.MPI_WORLD.Barrier()
began = time.perf_counter()
losses = [train() for _ in range(steps)]
last = network(samples)  # completes the sums of the last step
ht.MPI_WORLD.Barrier()
seconds = time.perf_counter() - began
if ht.MPI_WORLD.rank == 0:
    for number, loss in enumerate(losses):
        print(f"result loss-of-step-{number}", repr(loss))
    print("result outputs", repr(float(last.abs().sum())))
    print("seconds", seconds)
