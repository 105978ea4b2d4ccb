#!/usr/bin/env python3
"""Records with PyTorch the losses of GraphSAGE with maxima and norms that tests of package ranks compare with.

    python3 record_sage.py        reads gcn_curves.json, writes sage_curves.json

Conv is PyTorch Geometric's SAGEConv, aggr="mean" or "max", with its project and normalize, over
edges as a list; the perceptron may have a width of its own. In float64, with
gradients by autograd and steps of torch.optim.SGD. First weights and features are float32 values.
Recorded with PyTorch 1.13.0.
"""

import json

import torch
from torch.nn.functional import cross_entropy, normalize, relu

torch.set_default_dtype(torch.float64)
torch.manual_seed(3)
curves = json.load(open("gcn_curves.json"))
n, classes = curves["vertices"], curves["classes"]
x = torch.tensor(curves["dense"]["values"]).reshape(n, -1)
labels, split = torch.tensor(curves["labels"]), torch.tensor(curves["split"])
train = (split == 1) & (labels >= 0)
pairs = {(u, v) for a, b in curves["edges"] if a != b for u, v in ((a, b), (b, a))}
src, dst = torch.tensor(sorted(pairs)).t()


class Conv(torch.nn.Module):
    def __init__(self, width, out, aggr, pool, norm):
        super().__init__()
        self.aggr, self.norm, self.lin = aggr, norm, torch.nn.Linear(width, pool) if pool else None
        self.lin_l, self.lin_r = torch.nn.Linear(pool or width, out), torch.nn.Linear(width, out, bias=False)

    def forward(self, h):
        p = h if self.lin is None else relu(self.lin(h))
        if self.aggr == "mean":
            m = torch.zeros(n, p.shape[1]).index_add(0, dst, p[src]) / torch.bincount(dst, minlength=n).clamp(min=1).unsqueeze(1)
        else:
            rows = dst.unsqueeze(1).expand(-1, p.shape[1])
            m = torch.zeros(n, p.shape[1]).scatter_reduce(0, rows, p[src], "amax", include_self=False)
        z = self.lin_l(m) + self.lin_r(h)
        return normalize(z) if self.norm else z


def record(model, layers, pool=0, norm="", hidden=6, epochs=20, lr=0.1):
    convs, wide = [], x.shape[1]
    for l in range(layers):
        out = classes if l == layers - 1 else hidden
        width = (pool or wide) if model == "sage-pool" else 0
        convs.append(Conv(wide, out, "mean" if model == "sage" else "max", width, norm == "l2"))
        wide = out
    run = {"Model": model, "Layers": layers, "Hidden": hidden, "PoolHidden": pool, "Norm": norm, "LR": lr, "Weights": {}, "Loss64": []}
    names = {"lin.weight": "pool.weight", "lin.bias": "pool.bias", "lin_l.weight": "weight", "lin_l.bias": "bias", "lin_r.weight": "self.weight"}
    for l, conv in enumerate(convs):
        for name, w in conv.named_parameters():
            w.data = w.data.float().double()
            run["Weights"]["layers.%d.%s" % (l, names[name])] = w.detach().t().flatten().tolist()
    step = torch.optim.SGD([w for conv in convs for w in conv.parameters()], lr=lr)
    for _ in range(epochs):
        h = x
        for l, conv in enumerate(convs):
            h = conv(relu(h) if l else h)
        loss = cross_entropy(h[train], labels[train])
        run["Loss64"].append(loss.item())
        step.zero_grad()
        loss.backward()
        step.step()
    return run


with open("sage_curves.json", "w") as f:
    json.dump([record("sage-pool", 2), record("sage-pool", 3, pool=5, norm="l2"), record("sage-max", 2), record("sage-max", 2, norm="l2"),
               record("sage", 2, norm="l2"), record("sage-pool", 1, norm="l2")], f, separators=(",", ":"))
    f.write("\n")
