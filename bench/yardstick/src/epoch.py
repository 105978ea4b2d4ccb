"""Full-graph epochs of a GCN, GraphSAGE or GAT in PyTorch, as an experienced user
writes them: CSR matrices of 32-bit ids or bags of embeddings, the cheaper order
of products in each layer, a transpose made once for the gradient, no evaluation
in an epoch.

    epoch.py DIR
"""

import warnings

import numpy as np
import torch
import torch.nn.functional as F

from yard import Weights, adam, config, device, here, read, serve

warnings.filterwarnings("ignore", "Sparse CSR")
dims, model = config["dims"], config["model"]
once, bags = "ÂX once" in config["variant"], "bags" in config["variant"]


def ids(v):
    return here(v.astype(np.int32))


class Bags:
    """A sparse matrix whose products are sums of weighted embeddings."""

    def __init__(self, offsets, cols, values, shape):
        self.offsets, self.cols, self.values, self.shape = ids(offsets), ids(cols), values, shape

    def times(self, h, values):
        return F.embedding_bag(self.cols, h, self.offsets, mode="sum", per_sample_weights=values, include_last_offset=True)

    def __matmul__(self, h):
        return self.times(h, self.values)


def csr(offsets, cols, values, shape):
    if bags:
        return Bags(offsets, cols, here(values.astype(np.float32)), shape)
    return torch.sparse_csr_tensor(ids(offsets), ids(cols), here(values.astype(np.float32)), size=shape)


def with_loops(offsets, cols, row_scale, col_scale):
    """D^-1/2 (A + I) D^-1/2 of a graph without self loops."""
    n = len(offsets) - 1
    vertices = np.arange(n)
    rows = np.repeat(vertices, np.diff(offsets))
    lower = np.bincount(rows[cols < rows], minlength=n)
    loop = np.zeros(len(cols) + n, bool)
    loop[offsets[:-1] + vertices + lower] = True  # columns stay in order
    all_cols = np.empty(len(loop), np.int64)
    all_cols[loop], all_cols[~loop] = vertices, cols
    all_offsets = offsets + np.arange(n + 1)
    rows = np.repeat(vertices, np.diff(all_offsets))
    return csr(all_offsets, all_cols, row_scale[rows] * col_scale[all_cols], (n, n))


def means(offsets, cols, in_offsets, transposed):
    """D^-1 A, or its transpose: A's rows are those of offsets, D's those of in_offsets."""
    scale = 1 / np.maximum(np.diff(in_offsets), 1)
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return csr(offsets, cols, scale[cols if transposed else rows], (len(offsets) - 1,) * 2)


def adjacency():
    """A normalised, and its transpose."""
    offsets, cols = read("offsets", np.int64), read("cols", np.uint32)
    if model == "sage":
        out = (read("out_offsets", np.int64), read("out_cols", np.uint32)) if config["directed"] else (offsets, cols)
        return means(offsets, cols, offsets, False), means(*out, offsets, True)
    in_scale = 1 / np.sqrt(np.diff(offsets) + 1.0)
    if not config["directed"]:
        a = with_loops(offsets, cols, in_scale, in_scale)
        return a, a
    out_offsets, out_cols = read("out_offsets", np.int64), read("out_cols", np.uint32)
    out_scale = 1 / np.sqrt(np.diff(out_offsets) + 1.0)
    return (with_loops(offsets, cols, in_scale, out_scale),
            with_loops(out_offsets, out_cols, out_scale, in_scale))


class Multiply(torch.autograd.Function):
    """matrix @ h with a transpose given for the gradient of h."""

    @staticmethod
    def forward(ctx, h, matrix, transposed):
        ctx.transposed = transposed
        return matrix @ h

    @staticmethod
    def backward(ctx, grad):
        return ctx.transposed @ grad.contiguous(), None, None


class SparseFeatures:
    """X as CSR, and its transpose with the places of its values in X's."""

    def __init__(self, shape):
        self.shape = shape
        self.offsets, self.cols = read("x_offsets", np.int64), read("x_cols", np.uint32).astype(np.int64)
        self.values = here(read("x_vals", np.float32))
        rows = np.repeat(np.arange(shape[0]), np.diff(self.offsets))
        place = np.argsort(self.cols, kind="stable")
        self.place = here(place)
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.cols, minlength=shape[1]))])
        self.index = ids(self.offsets), ids(self.cols)
        self.transposed = ids(starts), ids(rows[place])

    def dense(self):
        x = np.zeros(self.shape, np.float32)
        x[np.repeat(np.arange(self.shape[0]), np.diff(self.offsets)), self.cols] = self.values.cpu().numpy()
        return here(x)

    def times(self, w):
        """dropout(X) w, dropping non-zeros."""
        values = F.dropout(self.values, config["input_dropout"])
        make = torch._sparse_csr_tensor_unsafe  # indices have been checked once
        x = make(*self.index, values, size=self.shape)
        xt = make(*self.transposed, values[self.place], size=self.shape[::-1])
        return Multiply.apply(w, x, xt)


A, At = adjacency()
n = A.shape[0]
if config["sparse_features"]:
    X = SparseFeatures((n, dims[0]))
    if config["variant"] != "sparse X":
        X = X.dense()
else:
    X = here(read("x", np.float32).reshape(n, dims[0]))
AX = A @ X if once else None

weights, layers = Weights(), []
for fan_in, fan_out in zip(dims, dims[1:]):
    matrices = [weights.take(fan_in, fan_out).requires_grad_() for _ in range(2 if model == "sage" else 1)]
    layers.append((*matrices, weights.take(fan_out).requires_grad_()))
optimizer = adam([w for l, layer in enumerate(layers) for w in layer[:-1] if l == 0 or config["decay_all"]],
                 [w for l, layer in enumerate(layers) for w in layer[:-1] if l > 0 and not config["decay_all"]]
                 + [layer[-1] for layer in layers])


def gather(h):
    return Multiply.apply(h, A, At)


def first(w, own):
    """The product of the first layer: features need no gradient, so gathering
    them costs one pass, gathering their product two."""
    if isinstance(X, SparseFeatures):
        product = X.times(w)
        return gather(product) + (X.times(own[0]) if own else 0)
    x = F.dropout(X, config["input_dropout"]) if config["input_dropout"] else X
    if once:
        h = AX @ w
    elif w.shape[0] <= 2 * w.shape[1]:
        h = (A @ x) @ w
    else:
        h = gather(x @ w)
    return h + x @ own[0] if own else h


def forward():
    (w, *own, b), *rest = layers
    h = first(w, own) + b
    for w, *own, b in rest:
        h = F.relu(h)
        if config["dropout"]:
            h = F.dropout(h, config["dropout"])
        near = h @ own[0] if own else 0
        h = (gather(h) @ w if w.shape[0] < w.shape[1] else gather(h @ w)) + near + b
    return h


serve(forward, optimizer)
