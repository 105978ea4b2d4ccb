"""Full-graph epochs of R-GCN in PyTorch, as an experienced user writes them: a matrix of
features, a projection and hidden rows for each kind of vertices, a product in the cheaper
order for each relation, and in each layer only kinds that the loss depends on.

    rgcn.py DIR
"""

import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from yard import Weights, adam, config, here, read, serve, train

warnings.filterwarnings("ignore", "Sparse CSR")
dims, kinds, relations = config["dims"], config["relations"]["kinds"], config["relations"]["relations"]
first = np.cumsum([0] + [k["vertices"] for k in kinds])


class Edges:
    """Sparse rows [rows x columns] with products in the form of the variant."""

    def __init__(self, rows, cols, values, shape):
        order = np.lexsort((cols, rows))
        self.shape, self.edges = shape, len(cols)
        self.rows, self.cols, self.values = here(rows[order]), here(cols[order]), here(values[order])
        self.offsets = here(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]))
        if config["variant"] == "CSR matrices":
            self.matrix = torch.sparse_csr_tensor(self.offsets.int(), self.cols.int(), self.values, size=shape)

    def times(self, h):
        if config["variant"] == "CSR matrices":
            return self.matrix @ h
        if config["variant"] == "embedding bags":
            return F.embedding_bag(self.cols, h, self.offsets, mode="sum", per_sample_weights=self.values, include_last_offset=True)
        return torch.zeros(self.shape[0], h.shape[1], device=h.device).index_add_(0, self.rows, h[self.cols] * self.values[:, None])


class Multiply(torch.autograd.Function):
    """The product of edges and h, with the transposed edges given for the gradient of h."""

    @staticmethod
    def forward(ctx, h, edges, transposed):
        ctx.transposed = transposed
        return edges.times(h)

    @staticmethod
    def backward(ctx, grad):
        return ctx.transposed.times(grad.contiguous()), None, None


class Relation:
    """The means along a relation."""

    def __init__(self, of, rows, cols):
        self.source, self.target = of["from"], of["to"]
        rows, cols = rows - first[self.target], cols - first[self.source]
        shape = kinds[self.target]["vertices"], kinds[self.source]["vertices"]
        count = np.bincount(rows, minlength=shape[0])
        values = (1 / count[rows]).astype(np.float32)
        self.edges, self.transposed = Edges(rows, cols, values, shape), Edges(cols, rows, values, shape[::-1])

    def times(self, h, w):
        """The product with h w, multiplied by w before or after: the number of operations decides."""
        (targets, sources), (fan_in, fan_out), edges = self.edges.shape, w.shape, self.edges.edges
        gather = 10  # operations of a dense product in the time of one of a sparse product
        if sources * fan_in * fan_out + gather * edges * fan_out < targets * fan_in * fan_out + gather * edges * fan_in:
            return Multiply.apply(h @ w, self.edges, self.transposed)
        return Multiply.apply(h, self.edges, self.transposed) @ w


class Features:
    """The features of a kind: an identity, a dense matrix or sparse rows."""

    def __init__(self, k, offsets, cols, values):
        offsets, self.shape = offsets[first[k]:first[k + 1] + 1], (kinds[k]["vertices"], kinds[k]["features"])
        cols = cols[offsets[0]:offsets[-1]].astype(np.int64) - kinds[k]["first_feature"]
        values = values[offsets[0]:offsets[-1]]
        rows = np.repeat(np.arange(self.shape[0]), np.diff(offsets))
        self.identity = self.shape[0] == self.shape[1] == len(cols) and (rows == cols).all() and (values == 1).all()
        self.dense = self.edges = None
        if not self.identity and 2 * len(cols) > self.shape[0] * self.shape[1]:
            dense = np.zeros(self.shape, np.float32)
            dense[rows, cols] = values
            self.dense = here(dense)
        elif not self.identity:
            self.edges, self.transposed = Edges(rows, cols, values, self.shape), Edges(cols, rows, values, self.shape[::-1])

    def times(self, w):
        if self.identity:
            return w
        return Multiply.apply(w, self.edges, self.transposed) if self.dense is None else self.dense @ w


def make_relations():
    offsets, cols, of = read("offsets", np.int64), read("cols", np.uint32).astype(np.int64), read("relations", np.uint16)
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return [Relation(r, rows[of == i], cols[of == i]) for i, r in enumerate(relations)]


def make_features():
    if config["sparse_features"]:
        rows = read("x_offsets", np.int64), read("x_cols", np.uint32), read("x_vals", np.float32)
    else:
        x = read("x", np.float32).reshape(-1, dims[0])
        mask = np.zeros(x.shape, bool)
        for k, kind in enumerate(kinds):
            mask[first[k]:first[k + 1], kind["first_feature"]:kind["first_feature"] + kind["features"]] = True
        rows = np.concatenate([[0], np.cumsum(mask.sum(1))]), np.nonzero(mask)[1], x[mask]
    return [Features(k, *rows) for k in range(len(kinds))]


if not config["project"] or config["input_dropout"]:
    sys.exit("error: this program needs a projection and no dropout of features: --model project=on --input-dropout 0")
of, X, weights = make_relations(), make_features(), Weights()
projections = [weights.take(dims[0], dims[1])]
projections = [projections[0][k["first_feature"]:k["first_feature"] + k["features"]].clone().requires_grad_() for k in kinds]
layers = []
for fan_in, fan_out in zip(dims[1:], dims[2:]):
    matrices = weights.take(len(of), fan_in, fan_out)
    layers.append(([matrices[r].clone().requires_grad_() for r in range(len(of))],
                   weights.take(fan_in, fan_out).requires_grad_(), weights.take(fan_out).requires_grad_()))
later = [w for matrices, own, _ in layers for w in matrices + [own]]
optimizer = adam(projections + (later if config["decay_all"] else []), ([] if config["decay_all"] else later) + [b for _, _, b in layers])

# The kinds between the first and the last with training vertices, and before it those that they depend on.
ends = np.searchsorted(first, train[[0, -1]].cpu().numpy(), side="right") - 1
needed = [list(range(ends[0], ends[1] + 1))]
for _ in layers:
    needed.insert(0, sorted({r.source for r in of if r.target in needed[0] and r.edges.edges} | set(needed[0])))


def forward():
    h = {k: X[k].times(projections[k]) for k in needed[0]}
    for l, (matrices, own, bias) in enumerate(layers):
        out = {k: torch.addmm(bias, h[k], own) for k in needed[l + 1]}
        for r, w in zip(of, matrices):
            if r.target in out and r.edges.edges:
                out[r.target] = out[r.target] + r.times(h[r.source], w)
        h = out
        if l < len(layers) - 1:
            h = {k: F.dropout(F.relu(z), config["dropout"]) if config["dropout"] else F.relu(z) for k, z in h.items()}
    return torch.cat([h[k] for k in needed[-1]]) if len(needed[-1]) > 1 else h[needed[-1][0]]


serve(forward, optimizer, int(first[needed[-1][0]]))
