"""Full-graph epochs of a GCN or a GAT in PyTorch Geometric or DGL, with the layers
that they have for it, on dense features and without dropout.

    layers.py DIR
"""

import warnings

import numpy as np
import torch
import torch.nn.functional as F

from yard import Weights, adam, config, device, here, read, serve

warnings.filterwarnings("ignore", "Sparse CSR")
dims, heads = config["dims"], config["heads"]
offsets, cols = read("offsets", np.int64), read("cols", np.uint32).astype(np.int64)
n = len(offsets) - 1
X = here(read("x", np.float32).reshape(n, dims[0]))


def edges():
    """Sources and targets, with an edge from each vertex to itself."""
    vertices = np.arange(n)
    targets = np.repeat(vertices, np.diff(offsets))
    return np.concatenate([cols, vertices]), np.concatenate([targets, vertices])


def put(parameter, value):
    with torch.no_grad():
        parameter.copy_(value.reshape(parameter.shape))


def attention(l):
    """Heads of layer l and their width."""
    if l == len(dims) - 2:
        return config["output_heads"], dims[l + 1]
    return heads, dims[l + 1] // heads


def gcn_in_pyg():
    import torch_geometric.nn as nn
    source, target = edges()
    degree = np.bincount(target, minlength=n).astype(np.float32)
    out = np.bincount(source, minlength=n).astype(np.float32)
    values = 1 / np.sqrt(degree[target] * out[source])
    try:  # keeps its transpose, where PyTorch's own matrices make it again
        from torch_sparse import SparseTensor
        matrix = SparseTensor(row=here(target), col=here(source), value=here(values), sparse_sizes=(n, n))
    except ImportError:
        matrix = torch.sparse_coo_tensor(here(np.stack([target, source])), here(values), (n, n)).coalesce().to_sparse_csr()
    layers = [nn.GCNConv(i, o, normalize=False).to(device) for i, o in zip(dims, dims[1:])]
    for conv, i, o in zip(layers, dims, dims[1:]):
        put(conv.lin.weight, weights.take(i, o).t())
        put(conv.bias, weights.take(o))
    return layers, lambda conv, h: conv(h, matrix)


def gat_in_pyg():
    import torch_geometric.nn as nn
    index = here(np.stack(edges()))
    layers = []
    for l, i in enumerate(dims[:-1]):
        k, w = attention(l)
        conv = nn.GATConv(i, w, k, concat=l < len(dims) - 2, add_self_loops=False).to(device)
        linear = getattr(conv, "lin", None)
        put((conv.lin_src if linear is None else linear).weight, weights.take(i, k * w).t())
        put(conv.att_src, weights.take(k, w))
        put(conv.att_dst, weights.take(k, w))
        put(conv.bias, weights.take(conv.bias.numel()))
        layers.append(conv)
    return layers, lambda conv, h: conv(h, index)


def dgl_graph():
    import dgl
    source, target = edges()
    return dgl.graph((torch.from_numpy(source), torch.from_numpy(target)), num_nodes=n).to(device)


def gcn_in_dgl():
    from dgl.nn.pytorch import GraphConv
    graph = dgl_graph()
    layers = [GraphConv(i, o, norm="both").to(device) for i, o in zip(dims, dims[1:])]
    for conv, i, o in zip(layers, dims, dims[1:]):
        put(conv.weight, weights.take(i, o))
        put(conv.bias, weights.take(o))
    return layers, lambda conv, h: conv(graph, h)


def gat_in_dgl():
    from dgl.nn.pytorch import GATConv
    graph = dgl_graph()
    layers = []
    for l, i in enumerate(dims[:-1]):
        k, w = attention(l)
        if l == len(dims) - 2 and k > 1:
            raise SystemExit("error: a bias of each output head, where siafu has one of their mean")
        conv = GATConv(i, w, k).to(device)
        put(conv.fc.weight, weights.take(i, k * w).t())
        put(conv.attn_l, weights.take(k, w))
        put(conv.attn_r, weights.take(k, w))
        put(conv.bias, weights.take(k * w))
        layers.append(conv)
    return layers, lambda conv, h: conv(graph, h).flatten(1)


weights = Weights()
make = {("gcn", "PyG"): gcn_in_pyg, ("gat", "PyG"): gat_in_pyg, ("gcn", "DGL"): gcn_in_dgl, ("gat", "DGL"): gat_in_dgl}
layers, apply = make[config["model"], config["variant"]]()


def forward():
    h = apply(layers[0], X)
    for conv in layers[1:]:
        h = apply(conv, F.elu(h) if config["model"] == "gat" else F.relu(h))
    return h


serve(forward, adam([], [p for conv in layers for p in conv.parameters()]))
