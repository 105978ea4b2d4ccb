"""Full-graph epochs of a GAT in PyTorch, as an experienced user writes them: sums
along edges are bags of embeddings, nothing has a row for each edge but the
weights, and gradients are written by hand.

    attention.py DIR
"""

import numpy as np
import torch
import torch.nn.functional as F

from yard import Weights, adam, config, here, read, serve

dims, heads = config["dims"], config["heads"]
offsets, cols = read("offsets", np.int64), read("cols", np.uint32).astype(np.int64)
n = len(offsets) - 1
rows = np.concatenate([np.repeat(np.arange(n), np.diff(offsets)), np.arange(n)])  # with an edge of each vertex to itself
cols = np.concatenate([cols, np.arange(n)])
order = np.argsort(rows, kind="stable")
rows, cols = rows[order], cols[order]
turned = np.argsort(cols, kind="stable")


class Edges:
    def __init__(self, rows, cols):
        self.starts = here(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]))
        self.rows, self.cols = here(rows), here(cols)
        self.all = here(np.arange(len(rows)))

    def gather(self, h, values):
        return F.embedding_bag(self.cols, h, self.starts, mode="sum", per_sample_weights=values, include_last_offset=True)

    def sum(self, values):
        return F.embedding_bag(self.all, values, self.starts, mode="sum", include_last_offset=True)


class Attention(torch.autograd.Function):
    """The sum of z [n, heads, width] along edges, weighted by softmax(leaky(far + near))."""

    @staticmethod
    def forward(ctx, z, far, near):
        score = F.leaky_relu(far[into.cols] + near[into.rows], 0.2)
        score -= F.leaky_relu(far.amax(0) + near, 0.2)[into.rows]  # not below the largest of a row
        weight = score.exp_()
        weight /= into.sum(weight)[into.rows]
        ctx.save_for_backward(z, far, near, weight)
        return torch.stack([into.gather(z[:, k].contiguous(), weight[:, k].contiguous()) for k in range(z.shape[1])], 1)

    @staticmethod
    def backward(ctx, grad):
        z, far, near, weight = ctx.saved_tensors
        dz, dweight = torch.empty_like(z), torch.empty_like(weight)
        for k in range(z.shape[1]):
            g = grad[:, k].contiguous()
            dz[:, k] = out.gather(g, weight[turned_here, k])
            dweight[:, k] = torch.ops.aten._embedding_bag_per_sample_weights_backward(
                g, z[:, k].contiguous(), into.cols, into.starts[:-1], into.rows, 0)
        score = weight * (dweight - into.sum(weight * dweight)[into.rows])
        score = torch.where(far[into.cols] + near[into.rows] > 0, score, 0.2 * score)
        return dz, out.sum(score[turned_here]), into.sum(score)


into, out, turned_here = Edges(rows, cols), Edges(cols[turned], rows[turned]), here(turned)
X = here(read("x", np.float32).reshape(n, dims[0]))
weights, layers = Weights(), []
for l, (fan_in, fan_out) in enumerate(zip(dims, dims[1:])):
    k, width = (config["output_heads"], fan_out) if l == len(dims) - 2 else (heads, fan_out // heads)
    layers.append([weights.take(*shape).requires_grad_() for shape in
                   ((fan_in, k * width), (k, width), (k, width), (fan_out if l == len(dims) - 2 else k * width,))])


def forward():
    h = X
    for l, (w, source, target, b) in enumerate(layers):
        z = (h @ w).view(n, *source.shape)
        h = Attention.apply(z, (z * source).sum(2), (z * target).sum(2))
        h = h.mean(1) + b if l == len(layers) - 1 else F.elu(h.flatten(1) + b)
    return h


serve(forward, adam([], [p for layer in layers for p in layer]))
