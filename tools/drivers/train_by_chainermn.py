"""Trains a network of three layers by ChainerMN, each rank on its own samples.

train_by_chainermn.py HIDDEN BATCH STEPS. After each backward pass the communicator "naive" sums the
gradients by one MPI_Allreduce for each array."""

import sys
import time

import chainer
import chainermn
import numpy as np

hidden, batch, steps = (int(word) for word in sys.argv[1:])


class Network(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = chainer.links.Linear(784, hidden)
            self.second = chainer.links.Linear(hidden, hidden)
            self.third = chainer.links.Linear(hidden, 10)

    def forward(self, samples):
        inner = chainer.functions.relu(self.first(samples))
        return self.third(chainer.functions.relu(self.second(inner)))


np.random.seed(1)  # Chainer draws the initial weights from this generator
communicator = chainermn.create_communicator("naive")
model = chainer.links.Classifier(Network())
optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.SGD(0.01), communicator)
optimizer.setup(model)
random = np.random.default_rng(communicator.rank)
samples = random.standard_normal((batch, 784)).astype(np.float32)
labels = random.integers(0, 10, batch).astype(np.int32)


def train() -> float:
    optimizer.update(model, samples, labels)
    return float(model.loss.array)


train()  # the first step only broadcasts the weights
train()
communicator.mpi_comm.Barrier()
began = time.perf_counter()
losses = [train() for _ in range(steps)]
communicator.mpi_comm.Barrier()
seconds = time.perf_counter() - began
if communicator.rank == 0:
    for number, loss in enumerate(losses):
        print(f"result loss-of-step-{number}", repr(loss))
    print("seconds", seconds)
