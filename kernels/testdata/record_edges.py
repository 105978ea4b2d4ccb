#!/usr/bin/env python3
"""Records with PyTorch the losses of GATv2 with features of edges that tests of package ranks compare with.

    python3 record_edges.py       reads gcn_curves.json, writes edge_curves.json

The layer is PyTorch Geometric's GATv2Conv(edge_dim=…, add_self_loops=True, fill_value="mean")
over edges as a list, in float64, with gradients by autograd and steps of torch.optim.SGD. The
graph is that of gcn_curves.json with its edges in one direction. First weights and features are
float32 values. Recorded with PyTorch 1.13.0.
"""

import json
import math

import torch

torch.set_default_dtype(torch.float64)
curves = json.load(open("gcn_curves.json"))
n, classes = curves["vertices"], curves["classes"]
x = torch.tensor(curves["dense"]["values"]).reshape(n, -1)
labels, split = torch.tensor(curves["labels"]), torch.tensor(curves["split"])
train = (split == 1) & (labels >= 0)
pairs = [e for e in curves["edges"] if e[0] != e[1]]
src, dst = torch.tensor(pairs).t()
gen = torch.Generator().manual_seed(1)
draw = lambda *shape: torch.randn(*shape, generator=gen).float().double()


def conv(h, w, l, attr, heads, last):
    of = lambda name: w["layers.%d.%s" % (l, name)]
    count = torch.zeros(n, 1).index_add(0, dst, torch.ones(len(dst), 1)).clamp(min=1)
    mean = torch.zeros(n, attr.shape[1]).index_add(0, dst, attr) / count
    loops = torch.arange(n)
    s, d, f = torch.cat([src, loops]), torch.cat([dst, loops]), torch.cat([attr, mean])
    z = (h @ of("weight")).reshape(n, heads, -1)
    r = (h @ of("target.weight") + of("target.bias")).reshape(n, heads, -1)
    t = z[s] + r[d] + (f @ of("edge.weight")).reshape(len(s), heads, -1)
    score = (torch.nn.functional.leaky_relu(t, 0.2) * of("attention")).sum(-1)
    e = (score - score.max()).exp()
    share = e / torch.zeros(n, heads).index_add(0, d, e)[d]
    out = torch.zeros(n, heads, z.shape[2]).index_add(0, d, z[s] * share.unsqueeze(-1))
    if last:
        return out.mean(1) + of("bias")
    return torch.nn.functional.elu(out.reshape(n, -1) + of("bias"))


def record(features, layers, heads, last, hidden, epochs=20, lr=0.3):
    attr, shapes, wide = draw(len(src), features), {}, x.shape[1]
    for l in range(layers):
        k, out = (last, classes) if l == layers - 1 else (heads, hidden)
        for name, shape in (("weight", (wide, k * out)), ("target.weight", (wide, k * out)), ("attention", (k, out)),
                            ("edge.weight", (features, k * out)), ("target.bias", (1, k * out)),
                            ("bias", (1, out if l == layers - 1 else k * out))):
            shapes["layers.%d.%s" % (l, name)] = shape
        wide = k * out
    w = {name: (draw(*shape) / math.sqrt(shape[0])).float().double().requires_grad_() for name, shape in shapes.items()}
    run = {"Features": features, "Layers": layers, "Heads": heads, "OutputHeads": last, "Hidden": hidden, "LR": lr,
           "EdgeFeatures": attr.flatten().tolist(), "Weights": {k: v.detach().flatten().tolist() for k, v in w.items()}, "Loss64": []}
    step = torch.optim.SGD(w.values(), lr=lr)
    for _ in range(epochs):
        h = x
        for l in range(layers):
            h = conv(h, w, l, attr, last if l == layers - 1 else heads, l == layers - 1)
        loss = torch.nn.functional.cross_entropy(h[train], labels[train])
        run["Loss64"].append(loss.item())
        step.zero_grad()
        loss.backward()
        step.step()
    return run


with open("edge_curves.json", "w") as f:
    json.dump([record(3, 2, 2, 3, 4), record(8, 3, 2, 1, 5), record(20, 2, 1, 1, 8, lr=0.1)], f, separators=(",", ":"))
    f.write("\n")
