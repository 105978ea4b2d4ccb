#!/usr/bin/env python3
"""The network of model.safetensors, beside which this file lies, in plain PyTorch.

    python3 model.py DATA [LOGITS [PAIRS]]

runs it over the dataset folder DATA and compares the logits with those that
"siafu predict RUN DATA --logits" has written (LOGITS is that logits.npy; without it the
likeliest classes are counted). Of a network for links LOGITS is embeddings.npy, and PAIRS
the pairs.csv of "siafu predict --pairs", whose scores are compared. It needs PyTorch and nothing else, and may be changed and
copied freely. As a module:

    import model
    net = model.load()                       # a torch.nn.Module
    logits = net(x, edge_index)              # x [n, features], edge_index [2, edges]
    logits = net(x, edge_index, edge_weight) # the same with weights of edges [edges]
    logits = net(x, edge_index, None, attr)  # the same with features of edges [edges, features]
    logits = net(x, edge_index, None, None, edge_type) # the same with relations of edges [edges]
    scores = net.score(z[src], z[dst])       # logits of pairs, z = net(…) of a network for links

edge_index has a row of sources and a row of destinations, as PyTorch Geometric has it,
without self loops and without edges that come twice.
"""
import ast
import json
import math
import os
import struct
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def read_safetensors(path):
    """The tensors and the metadata of a file: {name: tensor}, {key: text}."""
    kinds = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    about, tensors = head.pop("__metadata__", {}), {}
    for name, t in head.items():
        begin, end = t["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=kinds[t["dtype"]]) if end > begin else torch.zeros(0)
        tensors[name] = flat.reshape(t["shape"]).float()
    return tensors, about


class Net(torch.nn.Module):
    """One of siafu's networks; docs/weights.md has the formulas."""

    def __init__(self, kind, dims, heads=(1, 1), design=None, slope=0.2):
        super().__init__()
        if kind not in ("gcn", "sage", "sage-max", "sage-pool", "gin", "gat", "gatv2", "mlp", "gcnii", "appnp", "sgc", "sign", "rgcn"):
            raise ValueError("this file does not know the network %r" % kind)
        self.kind, self.heads, self.slope, self.design = kind, heads, slope, design or {}
        self.score_dropout = 0.0  # of score while training; may be set
        self.steps = len(dims) - 1 - int(bool(self.design.get("project")))
        for name in ("mean", "scale"):  # of scaled targets of a regression [columns]
            self.register_buffer(name, None, persistent=False)
        self.weights = torch.nn.ParameterDict()

    def put(self, name, tensor):
        self.weights[name.replace(".", "_")] = torch.nn.Parameter(tensor, requires_grad="running" not in name)

    def layer(self, l):
        """The weights of a layer by their names in it."""
        prefix = "layers_%d_" % l
        return {name[len(prefix):]: w for name, w in self.weights.items() if name.startswith(prefix)}

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None, edge_type=None):
        z = self.outputs(x, edge_index, edge_weight, edge_attr, edge_type)
        return z if self.scale is None else z * self.scale + self.mean

    def outputs(self, x, edge_index, edge_weight, edge_attr, edge_type):
        """The logits, or the numbers of a regression before they are scaled to the units of the targets."""
        edges = Edges(edge_index, x.shape[0], self.kind, edge_weight, edge_attr if self.design.get("edge-dim") else None, edge_type)
        if self.kind in ("gcnii", "appnp", "sgc", "sign"):
            return getattr(self, self.kind)(x, edges)
        if self.design.get("project"):
            x = x @ self.weights["project_weight"]
        jumping, rows = self.design.get("jumping"), []
        behind = 2 if jumping == "max" or not jumping and self.unit() else 1
        hidden = (self.steps - behind) // (1 + self.tails())
        for l in range(hidden):
            x = self.hidden(self.convolve(x, edges, l, False), self.layer(l), rows)
            rows.append(x)
        if not jumping:
            x = self.convolve(x, edges, hidden, True)
            return torch.nn.functional.normalize(x, eps=self.unit()) if self.unit() else x
        x, w = torch.cat(rows, 1) if jumping == "cat" else torch.stack(rows).amax(0), self.layer(hidden)
        return x @ w["weight"] + w["bias"]

    def unit(self):
        """The least norm that rows are divided by; None where they are not."""
        return {"l2": 1e-12, "ball": 1.0}.get(self.design.get("norm"))

    def tails(self):
        """How many steps of a hidden layer "dims" counts behind its convolution."""
        return 2 if "norm" in self.design else int("residual" in self.design or "activation" in self.design)

    def score(self, x, y, relation=None):
        """The logits [pairs] of edges between rows x and y [pairs, columns] of the output; relation [pairs] are the
        numbers of the edges' relations, if the score has weights for them."""
        if "score" in self.design:
            w, half = self.weights["score_relations"][relation], x.shape[1] // 2
            if self.design["score"] == "distmult":
                return (x * w * y).sum(1)
            return (torch.complex(x[:, :half], x[:, half:]) * torch.complex(w[:, :half], w[:, half:])
                    * torch.complex(y[:, :half], -y[:, half:])).real.sum(1)
        layers, h = self.design.get("score-layers", 0), x * y
        if not layers:
            return h.sum(1)
        for l in range(layers):
            h = h @ self.weights["score_%d_weight" % l] + self.weights["score_%d_bias" % l]
            if l < layers - 1:
                h = torch.nn.functional.dropout(torch.relu(h), self.score_dropout, self.training)
        return h.squeeze(1)

    def convolve(self, x, edges, l, last):
        """Layer l before its normalisation and activation."""
        w = self.layer(l)
        if self.kind in ("gat", "gatv2"):
            scores = static if self.kind == "gat" else dynamic
            return attention(*scores(x, edges, w, self.heads[last], self.slope), edges, w["bias"], last)
        if self.kind == "sage-pool":
            pooled = torch.relu(x @ w["pool_weight"] + w["pool_bias"])
            return edges.max(pooled) @ w["weight"] + x @ w["self_weight"] + w["bias"]
        if self.kind == "rgcn":
            return relational(x, edges, w, self.design) + x @ w["self_weight"] + w["bias"]
        if self.kind in ("sage", "sage-max"):
            return edges.gather(x) @ w["weight"] + x @ w["self_weight"] + w["bias"]
        if self.kind == "gin":
            return torch.relu(edges.sum(x) @ w["weight"] + w["bias"]) @ w["mlp_weight"] + w["mlp_bias"]
        return edges.sum(x @ w["weight"]) + w["bias"]

    def hidden(self, z, w, before):
        """What is left of a hidden layer; before are the rows of those before it."""
        functional, residual, alpha = torch.nn.functional, self.design.get("residual"), self.design.get("alpha", 0)
        norm, width = self.design.get("norm"), z.shape[1]
        if norm == "layer":
            z = functional.layer_norm(z, (width,), w["norm_weight"], w["norm_bias"], 1e-5)
        elif norm == "batch":
            z = functional.batch_norm(z, w["norm_running_mean"], w["norm_running_var"], w["norm_weight"], w["norm_bias"], self.training, 0.1, 1e-5)
        elif self.unit():
            z = functional.normalize(z, eps=self.unit())
        elif norm == "pair":
            z = z - z.mean(0)
            z = z / (z.square().sum(1).mean() + 1e-5).sqrt()
        if residual == "initial" and before:
            z = (1 - alpha) * z + alpha * before[0]
        f = self.design.get("activation", "elu" if self.kind in ("gat", "gatv2") else "relu")
        if f == "prelu":
            z = functional.prelu(z, w["activation_weight"].reshape(1))
        else:
            z = {"relu": torch.relu, "elu": functional.elu, "gelu": functional.gelu, "leaky": functional.leaky_relu}[f](z)
        return z + before[-1] if residual == "add" and before else z

    def gcnii(self, x, edges):
        alpha, w = self.design.get("alpha", 0), self.layer(0)
        first = x = torch.relu(x @ w["weight"] + w["bias"])
        for l in range(2, self.steps - 1):
            beta = math.log(self.design.get("theta", 0) / (l - 1) + 1)
            x = (1 - alpha) * edges.sum(x) + alpha * first
            x = torch.relu((1 - beta) * x + beta * (x @ self.layer(l)["weight"]))
        w = self.layer(self.steps - 1)
        return x @ w["weight"] + w["bias"]

    def appnp(self, x, edges):
        alpha, hops = self.design.get("alpha", 0), self.design.get("hops", 0)
        for l in range(self.steps - hops):
            w = self.layer(l)
            x = (torch.relu(x) if l else x) @ w["weight"] + w["bias"]
        first = x
        for _ in range(hops):
            x = (1 - alpha) * edges.sum(x) + alpha * first
        return x

    def sgc(self, x, edges):
        x = x @ self.layer(0)["weight"]
        for _ in range(self.steps - 1):
            x = edges.sum(x)
        return x + self.layer(self.steps - 1)["bias"]

    def sign(self, x, edges):
        powers, w, rows = 1 + self.design.get("hops", 0), self.layer(0)["weight"], []
        for block in w.split(w.shape[1] // powers, 1):
            x = edges.sum(x) if rows else x
            rows.append(x @ block)
        x = torch.cat(rows, 1) + self.layer(powers - 1)["bias"]
        for l in range(powers, self.steps):
            w = self.layer(l)
            x = torch.relu(x) @ w["weight"] + w["bias"]
        return x


class Edges:
    """The edges of a graph, with the coefficients that a network gives them."""

    def __init__(self, edge_index, n, kind, weight=None, attr=None, relation=None):
        src, dst = edge_index.long()
        self.relation = torch.zeros(len(src)) if relation is None else relation
        weight = torch.ones(len(src)) if weight is None else weight
        into = torch.zeros(n).index_add_(0, dst, weight)
        out = torch.zeros(n).index_add_(0, src, weight)
        self.n, self.plain, self.gather = n, kind == "mlp", self.max if kind == "sage-max" else self.sum
        if kind not in ("sage", "sage-max", "sage-pool", "rgcn"):  # every vertex is a neighbour of its own
            loops = torch.arange(n)
            src, dst = torch.cat([src, loops]), torch.cat([dst, loops])
            loop = torch.ones(n)
            if kind == "gatv2":  # features are attr or weights; the mean of those of the edges into a vertex
                attr = weight.unsqueeze(1) if attr is None else attr
                into_v = edge_index[1].long()
                count = torch.zeros(n, 1).index_add_(0, into_v, torch.ones(len(attr), 1)).clamp(min=1)
                mean = torch.zeros(n, attr.shape[1]).index_add_(0, into_v, attr) / count
                self.features = torch.cat([attr, mean])
            weight = torch.cat([weight, loop])
        self.src, self.dst, self.coefficient = src, dst, weight.unsqueeze(1)
        if kind in ("gcn", "gcnii", "appnp", "sgc", "sign"):
            self.coefficient = (weight * (into + 1).rsqrt()[dst] * (out + 1).rsqrt()[src]).unsqueeze(1)
        elif kind == "sage":
            self.coefficient = (weight / into[dst]).unsqueeze(1)

    def sum(self, x):
        """The sum over the in-neighbours of each vertex [n, columns]."""
        if self.plain:
            return x
        return torch.zeros(self.n, x.shape[1]).index_add_(0, self.dst, x[self.src] * self.coefficient)

    def max(self, x):
        """The largest of each column over the in-neighbours of each vertex, 0 without any."""
        rows = self.dst.unsqueeze(1).expand(-1, x.shape[1])
        return torch.zeros(self.n, x.shape[1]).scatter_reduce(0, rows, x[self.src], "amax", include_self=False)


def relational(x, edges, w, design):
    """The sum over relations of the mean of the in-neighbours along a relation, times its matrix [n, columns]."""
    relations, fan_in, blocks = design.get("relations", 0) or 1, x.shape[1], design.get("blocks", 0)
    if "basis" in w:
        matrices = (w["comp"] @ w["basis"].reshape(w["comp"].shape[1], -1)).reshape(relations, fan_in, -1)
    elif blocks:
        parts = w["weight"].reshape(relations, blocks, fan_in // blocks, -1)
        matrices = torch.stack([torch.block_diag(*part) for part in parts])
    else:
        matrices = w["weight"].reshape(relations, fan_in, -1)
    z = torch.zeros(edges.n, matrices.shape[2])
    for r in range(relations):
        src, dst = edges.src[edges.relation == r], edges.dst[edges.relation == r]
        count = torch.zeros(edges.n, 1).index_add_(0, dst, torch.ones(len(dst), 1)).clamp(min=1)
        z = z + torch.zeros_like(x).index_add_(0, dst, x[src]) / count @ matrices[r]
    return z


def static(x, edges, w, heads, slope):
    """What GAT gathers [n, heads, columns], and the scores of edges [edges, heads]."""
    z = (x @ w["weight"]).reshape(edges.n, heads, -1)
    left, right = (z * w["source"]).sum(-1), (z * w["target"]).sum(-1)  # [n, heads]
    return z, torch.nn.functional.leaky_relu(left[edges.src] + right[edges.dst], slope)


def dynamic(x, edges, w, heads, slope):
    """The same of GATv2."""
    z = (x @ w["weight"]).reshape(edges.n, heads, -1)
    r = (x @ w["target_weight"] + w["target_bias"]).reshape(edges.n, heads, -1)
    t = z[edges.src] + r[edges.dst]
    if "edge_weight" in w:
        t = t + (edges.features @ w["edge_weight"]).reshape(t.shape)
    return z, (torch.nn.functional.leaky_relu(t, slope) * w["attention"]).sum(-1)


def attention(z, score, edges, bias, last):
    """A layer of GAT or GATv2 before its activation."""
    heads = z.shape[1]
    most = torch.full((edges.n, heads), float("-inf"))
    most = most.scatter_reduce(0, edges.dst.unsqueeze(1).expand_as(score), score, "amax")
    share = (score - most[edges.dst]).exp()
    total = torch.zeros(edges.n, heads).index_add_(0, edges.dst, share)
    share = share / total[edges.dst]
    h = torch.zeros_like(z).index_add_(0, edges.dst, z[edges.src] * share.unsqueeze(-1))
    return (h.mean(1) if last else h.reshape(edges.n, -1)) + bias


def load(path=os.path.join(HERE, "model.safetensors")):
    """The network of a file of weights, in evaluation mode."""
    tensors, about = read_safetensors(path)
    net = Net(about["model"], json.loads(about["dims"]), json.loads(about.get("heads", "[1,1]")), json.loads(about.get("design", "{}")))
    for name, tensor in tensors.items():
        net.put(name, tensor)
    scaling = json.loads(about.get("data", "{}")).get("target_scaling")
    if scaling:
        net.mean, net.scale = (torch.tensor([s[k] for s in scaling]) for k in ("mean", "scale"))
    return net.eval()


def read_arrays(path):
    """The arrays of one of siafu's own files; docs/formats.md describes them."""
    kinds = {1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int32, 6: torch.int64, 8: torch.float32, 9: torch.float64}
    with open(path, "rb") as f:
        b = bytearray(f.read())
    if b[:8] != b"SIAFUARR":
        raise ValueError("%s is no file of siafu's" % path)
    arrays = {}
    for i in range(struct.unpack_from("<I", b, 12)[0]):
        name, kind, _, count, begin = struct.unpack_from("<32sIIQQ", b, 64 + 64 * i)
        name = name.rstrip(b"\0").decode()
        if count == 0:
            arrays[name] = torch.zeros(0, dtype=kinds[kind])
            continue
        arrays[name] = torch.frombuffer(b, dtype=kinds[kind], count=count, offset=begin)
        if kind == 5:  # uint32, which PyTorch did not always have
            arrays[name] = arrays[name].long() & 0xFFFFFFFF
    return arrays


def read_dataset(path):
    """Features [n, features], edge_index [2, edges], and weights [edges], features and relations of edges or None.
    Sparse features of a relational graph stay sparse: kinds of vertices have their own columns."""
    with open(os.path.join(path, "meta.json")) as f:
        meta = json.load(f)
    n, dim = meta["vertices"], meta["feature_dim"]
    if meta["feature_kind"] == "dense":
        x = read_arrays(os.path.join(path, "features.bin"))["dense"].reshape(n, dim)
    elif meta["feature_kind"] == "bf16":
        x = read_arrays(os.path.join(path, "features.bin"))["dense_bf16"].view(torch.bfloat16).float().reshape(n, dim)
    else:
        s = read_arrays(os.path.join(path, "features.csr"))
        rows = torch.repeat_interleave(torch.arange(n), s["offsets"].diff())
        x = torch.sparse_coo_tensor(torch.stack([rows, s["cols"]]), s["vals"], (n, dim))
        x = x if "relational" in meta else x.to_dense()
    g = read_arrays(os.path.join(path, "graph.csr"))  # a row of in-neighbours for each vertex
    dst = torch.repeat_interleave(torch.arange(n), g["offsets"].diff())
    weight = read_arrays(os.path.join(path, "weights.bin"))["weights"] if meta.get("weighted") else None
    attr = None
    if meta.get("edge_features"):
        attr = read_arrays(os.path.join(path, "edge_features.bin"))["features"].reshape(-1, meta["edge_features"])
    relation = read_arrays(os.path.join(path, "relations.bin"))["relations"] if "relational" in meta else None
    return x, torch.stack([g["cols"].long(), dst]), weight, attr, relation


def labelled(path):
    """Whether a vertex of a relational graph is of a kind with labels [n], or None."""
    with open(os.path.join(path, "meta.json")) as f:
        kinds = json.load(f).get("relational", {}).get("kinds")
    return kinds and torch.cat([torch.full((k["vertices"],), k.get("labels", 0) > 0) for k in kinds])


def read_npy(path):
    """A .npy file of float32."""
    with open(path, "rb") as f:
        f.seek(8)
        head = ast.literal_eval(f.read(struct.unpack("<H", f.read(2))[0]).decode())
        return torch.frombuffer(bytearray(f.read()), dtype=torch.float32).reshape(head["shape"])


def read_pairs(path):
    """The columns src, dst [pairs] and score [pairs] of siafu's pairs.csv."""
    with open(path) as f:
        names = f.readline().strip().split(",")
        rows = [line.strip().split(",") for line in f]
    column = lambda name, kind: torch.tensor([kind(row[names.index(name)]) for row in rows])
    return column("src", int), column("dst", int), column("score", float)


def compare(got, want, what):
    """Ends the program where numbers are not siafu's."""
    apart, largest = (got - want).abs().max().item(), want.abs().max().item()
    print("largest_difference=%.3g largest_%s=%.3g" % (apart, what, largest))
    if not apart <= 1e-4 * max(largest, 1):  # what sums in another order may differ by
        sys.exit("the %ss are not siafu's" % what)


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    net = load()
    with torch.no_grad():
        logits = net(*read_dataset(sys.argv[1]))
    classes = torch.bincount(logits.argmax(1), minlength=logits.shape[1])
    print("vertices=%d classes=%s" % (logits.shape[0], classes.tolist()))
    if len(sys.argv) > 2:
        want, kinds = read_npy(sys.argv[2]), labelled(sys.argv[1])
        if kinds is not None and want.shape[0] == kinds.sum():  # predictions are of kinds with labels
            logits = logits[kinds]
        if want.shape != logits.shape:
            sys.exit("%s has the shape %s, the network makes %s" % (sys.argv[2], list(want.shape), list(logits.shape)))
        compare(logits, want, "logit")
    if len(sys.argv) == 4:
        if os.path.exists(os.path.join(sys.argv[1], "ids.bin")):
            sys.exit("the vertices of %s have ids that are no rows, which PAIRS is not read by" % sys.argv[1])
        if "score" in net.design:
            sys.exit("PAIRS has names of relations, which are not read")
        src, dst, scores = read_pairs(sys.argv[3])
        with torch.no_grad():
            compare(net.score(logits[src], logits[dst]), scores, "score")


if __name__ == "__main__":
    main()
