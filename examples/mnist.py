"""mnist.py: a multilayer perceptron on MNIST in Python, as mnist_mlp.c has it in C.
    mnist.py FOLDER [STEPS]     FOLDER: the four idx files, gz or not
A second run goes on from mlp.safetensors, where the first one left the weights and the optimiser."""
import os
import sys

from tinygrad_c import Tensor, TinyJit, nn
from tinygrad_c.nn.state import get_parameters, get_state_dict, load_optimizer, load_state_dict, safe_load, safe_save

BATCH, WIDE, PATH = 128, 128, "mlp.safetensors"


class Net:
    def __init__(self):
        self.fc1, self.fc2 = nn.Linear(784, WIDE), nn.Linear(WIDE, 10)

    def __call__(self, x):  # u8 (b, 1, 28, 28) -> (b, 10)
        return self.fc2(self.fc1(x.flatten(1).float() / 255).relu())


def main(folder, steps=1000):
    train_x, train_y, test_x, test_y = nn.datasets.mnist(folder)
    net = Net()
    optim = nn.optim.Adam(get_parameters(net), lr=2e-3)
    if os.path.exists(PATH):  # the checkpoint of an earlier run
        saved = safe_load(PATH)
        load_state_dict(net, {k[4:]: t for k, t in saved.items() if k.startswith("net.")})
        load_optimizer(optim, {k[6:]: t for k, t in saved.items() if k.startswith("optim.")})
        print("going on from", PATH)

    @TinyJit
    def step(x, y):
        loss = net(x).sparse_cross_entropy(y).backward()
        optim.step()
        return loss

    batches = nn.datasets.DataLoader(train_x, train_y, batch=BATCH, shuffle=True, drop_last=True, seed=1)
    done = 0
    while done < steps:
        for x, y in batches:
            loss = step(x, y)
            if done % 100 == 0 or done + 1 == steps:
                print(f"step {done + 1}  loss {loss.item():.4f}")
            done += 1
            if done == steps:
                break
    safe_save({**get_state_dict(net, "net"), **get_state_dict(optim, "optim")}, PATH)
    right = (net(test_x).argmax(-1) == test_y).float().mean()
    print(f"test accuracy {100 * right.item():.2f} %")


if len(sys.argv) < 2:
    print("usage: mnist.py FOLDER [STEPS]")
    sys.exit(2)
main(sys.argv[1], *map(int, sys.argv[2:]))
