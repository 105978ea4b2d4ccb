"""What the sides of an epoch share: the operands in a folder, the optimiser, and the
loop that answers siafu.

Commands on standard input, once "ready" is said: "run SECONDS" repeats epochs
until the time is over, at least one, and answers the least seconds; "save PATH"
writes the loss of every epoch so far as float32.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

folder = sys.argv[1]
with open(folder + "/config") as f:
    config = json.load(f)
torch.set_num_threads(config["threads"])
device = torch.device(config["device"])
if device.type == "cuda" and not torch.cuda.is_available():
    sys.exit("error: PyTorch %s finds no GPU" % torch.__version__)


def read(name, dtype):
    return np.fromfile(folder + "/" + name, dtype)


def here(v):
    """An array as a tensor where the training is."""
    return torch.from_numpy(v).to(device)


labels = here(read("labels", np.int32).astype(np.int64))
train = here(np.nonzero((read("split", np.uint8) == 1) & (labels.cpu().numpy() >= 0))[0])


class Weights:
    """The initial weights, taken one after the other."""

    def __init__(self):
        self.flat, self.at = here(read("weights", np.float32)), 0

    def take(self, *shape):
        n = int(np.prod(shape))
        self.at += n
        return self.flat[self.at - n:self.at].reshape(shape).clone()


def adam(decayed, others):
    groups = [{"params": decayed, "weight_decay": config["weight_decay"]}, {"params": others}]
    return torch.optim.Adam([g for g in groups if g["params"]], lr=config["lr"])


def serve(forward, optimizer, first=0):
    """Trains with the logits of forward() as siafu requests. Row 0 of the logits is vertex first."""
    losses = []

    def epoch():
        optimizer.zero_grad()
        loss = F.cross_entropy(forward()[train - first], labels[train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits for the device

    def least(budget):
        best, begin = float("inf"), time.perf_counter()
        before = begin
        while before - begin < budget:
            epoch()
            now = time.perf_counter()
            best, before = min(best, now - before), now
        return best

    epoch()  # touches memory for the first time
    print("ready", flush=True)
    for line in sys.stdin:
        command, value = line.rstrip("\n").split(" ", 1)
        if command == "run":
            print("%.9f" % least(float(value)), flush=True)
        elif command == "save":
            np.array(losses, np.float32).tofile(value)
            print("saved", flush=True)
