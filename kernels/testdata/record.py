#!/usr/bin/env python3
"""Records from PyTorch what the tests of package kernels compare with.

    python3 record.py        writes optimizers.json, loss.json, gcn_curves.json

Every input is a float32 value, so that a reader starts from the same numbers;
outputs are computed in float64 (and, for the curves, in float32 as well).
Recorded with PyTorch 1.13.0 on a CPU.
"""

import json

import torch
import torch.nn.functional as F


def write(name, value):
    with open(name, "w") as f:
        json.dump(value, f, separators=(",", ":"))
        f.write("\n")


def draw(gen, *shape):
    """Float32 normals."""
    return torch.randn(*shape, generator=gen)


def optimizer(params, c):
    """The optimiser of an OptimizerConfig over params or param groups."""
    wd = c.get("WeightDecay", 0)
    if c["Name"] == "sgd":
        return torch.optim.SGD(params, lr=c["LR"], momentum=c.get("Momentum", 0), weight_decay=wd)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[c["Name"]]
    betas = (c.get("Beta1", 0.9), c.get("Beta2", 0.999))
    return kind(params, lr=c["LR"], betas=betas, eps=c.get("Eps", 1e-8), weight_decay=wd)


def optimizers():
    gen = torch.Generator().manual_seed(1)
    steps, n = 20, 7
    param, grads = draw(gen, n), draw(gen, steps, n)
    grads[:, 3] = 0  # Adam's second moment stays 0 without weight decay
    grads[:, 4] *= 1e-6  # epsilon matters
    cases = []
    for c in [
        {"Name": "sgd", "LR": 0.1},
        {"Name": "sgd", "LR": 0.1, "WeightDecay": 0.05},
        {"Name": "sgd", "LR": 0.1, "Momentum": 0.9},
        {"Name": "sgd", "LR": 0.1, "Momentum": 0.9, "WeightDecay": 0.05},
        {"Name": "adam", "LR": 0.01},
        {"Name": "adam", "LR": 0.01, "WeightDecay": 0.05},
        {"Name": "adam", "LR": 0.02, "WeightDecay": 0.05, "Beta1": 0.8, "Beta2": 0.95, "Eps": 1e-6},
        {"Name": "adamw", "LR": 0.01, "WeightDecay": 0.05},
    ]:
        w = param.double().requires_grad_()
        opt = optimizer([w], c)
        path = []
        for g in grads:
            w.grad = g.double()
            opt.step()
            path.append(w.tolist())
        cases.append({"config": c, "params": path})
    write("optimizers.json", {"param": param.tolist(), "grads": grads.tolist(), "cases": cases})


def loss():
    gen = torch.Generator().manual_seed(2)
    rows, classes, want = 12, 5, 1
    logits = 3 * draw(gen, rows, classes)
    logits[0] += 10000  # the maximum has to be taken out
    logits[1] *= 40
    logits[2] = 0.25  # ties
    labels = torch.randint(0, classes, (rows,), generator=gen)
    labels[[3, 7]] = -1
    split = torch.tensor([1, 1, 1, 1, 2, 0, 1, 3, 1, 1, 3, 1])
    keep = (split == want) & (labels >= 0)
    z = logits.double().requires_grad_()
    total = F.cross_entropy(z[keep], labels[keep], reduction="sum")
    total.backward()
    write("loss.json", {
        "classes": classes, "logits": logits.tolist(), "labels": labels.tolist(), "split": split.tolist(),
        "want": want, "count": int(keep.sum()), "loss": total.item(), "grad": z.grad.tolist(),
        "softmax": torch.softmax(logits.double(), 1).tolist(),
    })


def graph(gen, vertices, degree):
    """Undirected edges u < v without duplicates; the last vertex has none."""
    edges = set()
    while len(edges) < vertices * degree // 2:
        u, v = sorted(torch.randint(0, vertices - 1, (2,), generator=gen).tolist())
        if u != v:
            edges.add((u, v))
    return sorted(edges)


def normalized(edges, vertices):
    """D^-1/2 (A + I) D^-1/2 in float64."""
    a = torch.eye(vertices, dtype=torch.float64)
    for u, v in edges:
        a[u, v] = a[v, u] = 1
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


def train(dtype, a, x, labels, rows, weights, config, epochs):
    """The loss of each epoch, taken before its update, and the last weights."""
    a, x = a.to(dtype), x.to(dtype)
    ws = [w.to(dtype).clone().requires_grad_() for w in weights]
    bs = [torch.zeros(w.shape[1], dtype=dtype, requires_grad=True) for w in weights]
    opt = optimizer([{"params": ws}, {"params": bs, "weight_decay": 0}], config)
    losses = []
    for _ in range(epochs):
        h = x
        for l, (w, b) in enumerate(zip(ws, bs)):
            h = a @ (h @ w) + b
            if l < len(ws) - 1:
                h = torch.relu(h)
        value = F.cross_entropy(h[rows], labels[rows])
        losses.append(value.item())
        opt.zero_grad()
        value.backward()
        opt.step()
    return losses, [w.flatten().tolist() for w in ws], [b.tolist() for b in bs]


def curves():
    gen = torch.Generator().manual_seed(3)
    vertices, classes, epochs = 60, 5, 50
    edges = graph(gen, vertices, 5)
    labels = torch.randint(0, classes, (vertices,), generator=gen)
    centres = {"dense": draw(gen, classes, 12), "sparse": draw(gen, classes, 33)}
    features = {k: (c[labels] + draw(gen, vertices, c.shape[1])) for k, c in centres.items()}
    # A tenth of the sparse features, none in vertex 5.
    mask = torch.rand(vertices, 33, generator=gen) < 0.1
    mask[5] = False
    features["sparse"] = features["sparse"].abs() * mask
    labels[[7, 31]] = -1
    split = torch.randint(0, 4, (vertices,), generator=gen)
    rows = (split == 1) & (labels >= 0)
    a = normalized(edges, vertices)

    runs = []
    for name, x in features.items():
        for hidden in [[16], [16, 16]]:
            dims = [x.shape[1], *hidden, classes]
            weights = [draw(gen, m, n) / m**0.5 for m, n in zip(dims, dims[1:])]
            for config in [
                {"Name": "adam", "LR": 0.01, "WeightDecay": 5e-4},
                {"Name": "sgd", "LR": 0.1, "Momentum": 0.9, "WeightDecay": 5e-4},
            ]:
                loss64, w64, b64 = train(torch.float64, a, x, labels, rows, weights, config, epochs)
                loss32, _, _ = train(torch.float32, a, x, labels, rows, weights, config, epochs)
                runs.append({
                    "features": name, "dims": dims, "optimizer": config,
                    "weights": [w.flatten().tolist() for w in weights],
                    "loss64": loss64, "loss32": loss32, "final_weights": w64, "final_biases": b64,
                })
    sparse = features["sparse"]
    write("gcn_curves.json", {
        "vertices": vertices, "classes": classes, "edges": edges,
        "labels": labels.tolist(), "split": split.tolist(),
        "dense": {"dim": 12, "values": features["dense"].flatten().tolist()},
        "sparse": {
            "dim": 33,
            "offsets": [0, *(sparse != 0).sum(1).cumsum(0).tolist()],
            "cols": sparse.nonzero()[:, 1].tolist(),
            "vals": sparse[sparse != 0].tolist(),
        },
        "runs": runs,
    })


torch.set_num_threads(1)
optimizers()
loss()
curves()
