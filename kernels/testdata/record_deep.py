#!/usr/bin/env python3
"""Records with NumPy the losses of deep networks that tests of package ranks compare with.

    python3 record_deep.py        reads gcn_curves.json, writes deep_curves.json

The networks stand here as in their papers: matrices, in float64. Gradients are central
differences of the loss, so that nothing is derived twice; a step is one of plain gradient
descent. First weights are float32 values. Recorded with NumPy 1.24.2.
"""

import json
import math

import numpy as np

curves = json.load(open("gcn_curves.json"))
n, classes = curves["vertices"], curves["classes"]
x = np.array(curves["dense"]["values"]).reshape(n, -1)
labels, split = np.array(curves["labels"]), np.array(curves["split"])
a = np.eye(n)
for u, v in curves["edges"]:
    a[u, v] = a[v, u] = 1
d = a.sum(1) ** -0.5
a = d[:, None] * a * d[None, :]
train = (split == 1) & (labels >= 0)
relu = lambda z: np.maximum(z, 0)
gelu = lambda z: z * np.vectorize(lambda t: (1 + math.erf(t / math.sqrt(2))) / 2)(z)


def gcnii(w, c):
    h0 = h = relu(x @ w["layers.0.weight"] + w["layers.0.bias"])
    for l in range(1, c["Layers"] + 1):
        beta = math.log(c["Theta"] / l + 1)
        p = (1 - c["Alpha"]) * a @ h + c["Alpha"] * h0
        h = relu((1 - beta) * p + beta * p @ w[f"layers.{l + 1}.weight"])
    last = f"layers.{c['Layers'] + 2}."
    return h @ w[last + "weight"] + w[last + "bias"]


def appnp(w, c):
    z = h = relu(x @ w["layers.0.weight"] + w["layers.0.bias"]) @ w["layers.1.weight"] + w["layers.1.bias"]
    for _ in range(c["Hops"]):
        z = (1 - c["Alpha"]) * a @ z + c["Alpha"] * h
    return z


def sgc(w, c):
    return np.linalg.matrix_power(a, c["Layers"]) @ x @ w["layers.0.weight"] + w[f"layers.{c['Layers']}.bias"]


def sign(w, c):
    r, theta = c["Hops"], np.split(w["layers.0.weight"], c["Hops"] + 1, axis=1)
    h = np.hstack([np.linalg.matrix_power(a, k) @ x @ theta[k] for k in range(r + 1)])
    h = relu(h + w[f"layers.{r}.bias"])
    return h @ w[f"layers.{r + 1}.weight"] + w[f"layers.{r + 1}.bias"]


def norm(z, w, l, kind):
    if kind == "off":
        return z
    if kind == "pair":
        z = z - z.mean(0)
        return z / np.sqrt(1e-5 + (z**2).sum(1).mean())
    axis = {"layer": 1, "batch": 0}[kind]
    z = (z - z.mean(axis, keepdims=True)) / np.sqrt(z.var(axis, keepdims=True) + 1e-5)
    return z * w[f"layers.{l}.norm.weight"] + w[f"layers.{l}.norm.bias"]


def gcn(w, c):
    slope = lambda l: w[f"layers.{l}.activation.weight"] if c["Activation"] == "prelu" else 0
    f = {"auto": lambda z, l: relu(z), "gelu": lambda z, l: gelu(z), "prelu": lambda z, l: relu(z) - slope(l) * relu(-z)}[c["Activation"]]
    h = first = None
    for l in range(c["Layers"]):
        z = a @ (x if l == 0 else h) @ w[f"layers.{l}.weight"] + w[f"layers.{l}.bias"]
        if l == c["Layers"] - 1:
            return z
        z = norm(z, w, l, c["Norm"])
        if l > 0 and c["Residual"] == "initial":
            z = (1 - c["Alpha"]) * z + c["Alpha"] * first
        z = f(z, l)
        h = z + h if l > 0 and c["Residual"] == "add" else z
        first = h if l == 0 else first


def gatv2(w, c):
    h, edge = x, (a > 0)  # from the column to the row, and from each vertex to itself
    for l in range(c["Layers"]):
        of, last = (lambda k: w[f"layers.{l}.{k}"]), l == c["Layers"] - 1
        heads = of("attention").shape[0]
        split = lambda z: z.reshape(n, heads, -1)
        z, r = split(h @ of("weight")), split(h @ of("target.weight") + of("target.bias"))
        t = r[:, None] + z[None, :]  # [target, source, head, column]
        s = (np.where(t > 0, t, 0.2 * t) * of("attention")).sum(3)
        s = np.where(edge[:, :, None], s, -np.inf)
        p = np.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        h = np.einsum("vuk,ukj->vkj", p, z)
        if last:
            return h.mean(1) + of("bias")
        h = h.reshape(n, -1) + of("bias")
        h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)))


def loss(net, w, c):
    z = net(w, c)[train]
    z = z - z.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), labels[train]]))


def record(net, c, shapes, gen, epochs=8, lr=0.5, h=1e-6):
    c = {"Layers": 2, "Hops": 1, "Alpha": 0.1, "Theta": 0.5, "Residual": "none", "Activation": "auto", "Norm": "off", **c}
    w = {k: (gen.standard_normal(s) / math.sqrt(s[0])).astype(np.float32).astype(np.float64) for k, s in shapes.items()}
    run = {"Model": net.__name__, **c, "LR": lr, "Weights": {k: v.ravel().tolist() for k, v in w.items()}, "Loss64": []}
    for _ in range(epochs):
        run["Loss64"].append(loss(net, w, c))
        grad = {}
        for k, v in w.items():
            g, flat = np.zeros(v.size), v.reshape(-1)
            for i in range(v.size):
                at = flat[i]
                flat[i] = at + h
                up = loss(net, w, c)
                flat[i] = at - h
                g[i] = (up - loss(net, w, c)) / (2 * h)
                flat[i] = at
            grad[k] = g.reshape(v.shape)
        for k in w:
            w[k] -= lr * grad[k]
    return run


gen, dim, hidden = np.random.default_rng(1), x.shape[1], 4
dense = lambda l, i, o: {f"layers.{l}.weight": (i, o), f"layers.{l}.bias": (1, o)}
stack = {**dense(0, dim, hidden), **dense(1, hidden, hidden), **dense(2, hidden, hidden), **dense(3, hidden, classes)}
three = {**dense(0, dim, hidden), **dense(1, hidden, hidden), **dense(2, hidden, classes)}
gains = {f"layers.{l}.norm.{k}": (1, hidden) for l in (0, 1) for k in ("weight", "bias")}
slopes = {f"layers.{l}.activation.weight": (1, 1) for l in (0, 1)}
attends = lambda l, i, heads, o, bias: {
    f"layers.{l}.{k}": s for k, s in (("weight", (i, heads * o)), ("target.weight", (i, heads * o)), ("attention", (heads, o)), ("target.bias", (1, heads * o)), ("bias", (1, bias)))
}
runs = [
    record(gcnii, {"Layers": 3, "Alpha": 0.3}, {**dense(0, dim, hidden), **{f"layers.{l}.weight": (hidden, hidden) for l in (2, 3, 4)}, **dense(5, hidden, classes)}, gen),
    record(appnp, {"Hops": 4, "Alpha": 0.2}, {**dense(0, dim, hidden), **dense(1, hidden, classes)}, gen),
    record(sgc, {"Layers": 3}, {"layers.0.weight": (dim, classes), "layers.3.bias": (1, classes)}, gen),
    record(gcn, {"Layers": 4, "Residual": "add"}, stack, gen),
    record(gcn, {"Layers": 4, "Residual": "initial", "Activation": "gelu"}, stack, gen),
    record(gcn, {"Layers": 3, "Norm": "layer", "Activation": "prelu"}, {**three, **gains, **slopes}, gen, lr=0.1),
    record(gcn, {"Layers": 3, "Norm": "batch", "Activation": "gelu"}, {**three, **gains}, gen, lr=0.1),
    record(gcn, {"Layers": 3, "Norm": "pair", "Residual": "add"}, three, gen, lr=0.1),
    record(gatv2, {"Layers": 2, "Heads": 2, "OutputHeads": 3}, {**attends(0, dim, 2, hidden, 2 * hidden), **attends(1, 2 * hidden, 3, classes, classes)}, gen),
    record(sign, {"Hops": 2}, {"layers.0.weight": (dim, 3 * hidden), "layers.2.bias": (1, 3 * hidden), **dense(3, 3 * hidden, classes)}, gen),
]
with open("deep_curves.json", "w") as f:
    json.dump(runs, f, separators=(",", ":"))
    f.write("\n")
