"""Writes the .dgl files in this folder: the tiny graph of helper_test.go as DGL's
dgl.save_graphs would write it.

DGL was not at hand. This is a second writing-down of its format, from its sources
(src/graph/serialize/heterograph_serialize.cc, heterograph_data.h, src/graph/heterograph.cc,
unit_graph.cc, immutable_graph.cc, include/dgl/aten/coo.h and csr.h, src/runtime/ndarray.cc,
and dmlc-core's serializer.h), independent of the reader. No file here is DGL's own.
"""
import struct


def u64(*values):
    return struct.pack("<%dQ" % len(values), *values)


def string(text):
    return u64(len(text)) + text.encode()


def vector(items):
    return u64(len(items)) + b"".join(items)


KINDS = {"b": (0, 8), "i": (0, 32), "q": (0, 64), "B": (1, 8), "f": (2, 32), "d": (2, 64)}


def array(kind, values, shape=None):
    """An NDArray: magic, reserved, device (CPU 0), dimensions, type, shape, bytes, data."""
    code, bits = KINDS[kind]
    data = struct.pack("<%d%s" % (len(values), kind), *values)
    shape = [len(values)] if shape is None else shape
    return (u64(0xDD5E40F096B4A13F, 0) + struct.pack("<iii", 1, 0, len(shape)) + struct.pack("<BBH", code, bits, 1)
            + struct.pack("<%dq" % len(shape), *shape) + struct.pack("<q", len(data)) + data)


def csr_matrix(kind, rows, cols, indptr, indices, ids):
    head = struct.pack("<Qqq", 0xDD6CD31205DFF127, cols, rows)
    return head + array(kind, indptr) + array(kind, indices) + array(kind if ids else "q", ids) + b"\0"


def coo_matrix(kind, rows, cols, row, col):
    head = struct.pack("<Qqq", 0xDD61FFD305DFF127, cols, rows)
    return head + array(kind, row) + array(kind, col) + array("q", []) + b"\0\0"


def meta_graph(types=1, relations=((0, 0),)):
    """An ImmutableGraph by its out-edges: a vertex a type, an edge a relation."""
    order = sorted(range(len(relations)), key=lambda e: relations[e][0])
    indptr = [sum(s < t for s, _ in relations) for t in range(types + 1)]
    return u64(0xDD3C5FFE20046ABF) + csr_matrix("q", types, types, indptr, [relations[e][1] for e in order], order)


def rows_of(pairs, n, by):
    """indptr, indices and edge ids of pairs, by their sources (0) or destinations (1)."""
    order = sorted(range(len(pairs)), key=lambda e: pairs[e][by])
    indptr = [sum(p[by] < v for p in pairs) for v in range(n + 1)]
    return indptr, [pairs[e][1 - by] for e in order], order


COO, CSR, CSC = 1, 2, 4


def unit_graph(kind, n, pairs, formats, old=False):
    code = {COO: 1, CSR: 2, CSC: 3}[formats] if old else formats | 1 << 32
    out = u64(0xDD2E60F0F6B4A127) + struct.pack("<qq", code, 0 if old else 7 | 1 << 32)
    if formats & COO:
        out += meta_graph() + coo_matrix(kind, n, n, [p[0] for p in pairs], [p[1] for p in pairs])
    if formats & CSR:
        out += meta_graph() + csr_matrix(kind, n, n, *rows_of(pairs, n, 0))
    if formats & CSC:
        out += meta_graph() + csr_matrix(kind, n, n, *rows_of(pairs, n, 1))
    return out


def tensors(dictionary):
    return vector([string(name) + value for name, value in dictionary.items()])


def graph(n, unit_graphs, ndata, edata, types=("_N",), relations=("_E",), meta=None):
    hetero = u64(0xDD589FBE35224ABF) + (meta or meta_graph()) + vector(unit_graphs) + u64(len(types)) + struct.pack("<%dq" % len(types), *n)
    return (hetero + vector([tensors(d) for d in ndata]) + vector([tensors(d) for d in edata])
            + vector([string(t) for t in types]) + vector([string(r) for r in relations]))


def save_graphs(path, graphs, labels=None):
    labels = tensors(labels or {})
    out = u64(0xDD2E4FF046B4A13F, 2, 2, len(graphs)).ljust(4096, b"\xa5")  # reserved, and not cleared
    out += u64(len(out) + 8 + len(labels)) + labels
    places = []
    for g in graphs:
        places.append(len(out))
        out += g
    blob = u64(len(places), *places)
    with open(path, "wb") as f:
        f.write(out + u64(len(blob)) + blob + u64(len(blob)))


pairs = [(0, 1), (1, 2), (2, 0), (3, 0)]
masks = {"train_mask": array("B", [1, 1, 0, 0]), "val_mask": array("B", [0, 0, 1, 0]), "test_mask": array("B", [0, 0, 0, 1])}
ndata = dict(masks, feat=array("f", [1, 2, 3, 4, 5, 6, 7, 8], [4, 2]), label=array("q", [0, 1, 1, 0]))
tiny = graph([4], [unit_graph("q", 4, pairs, COO)], [ndata], [{}])
save_graphs("coo.dgl", [tiny])

# Before DGL 0.8, edges of 32 bits by their sources, and ids of edges in another order.
turned = pairs[::-1]
weights = {"weight": array("f", [4, 0, 2, 0.5]), "kind": array("b", [0, 0, 1, 1])}
save_graphs("csr.dgl", [graph([4], [unit_graph("i", 4, turned, CSR, old=True)], [ndata], [weights])], {"glabel": array("q", [7])})

# Features of edges.
features = {"feat": array("f", [7, 8, 5, 6, 3, 4, 1, 2], [4, 2]), "e": array("f", [1, 2, 3, 4], [4, 1])}
save_graphs("features.dgl", [graph([4], [unit_graph("q", 4, turned, COO)], [ndata], [features])])

# Two graphs; the second one by its destinations as well as its sources.
other = dict(masks, feat=array("d", [1, 2, 3, 4, 5, 6, 7, 8], [4, 2]), label=array("i", [0, 1, 1, 0], [4, 1]))
save_graphs("several.dgl", [graph([1], [unit_graph("q", 1, [], COO)], [{}], [{}]), graph([4], [unit_graph("q", 4, pairs, CSR | CSC)], [other], [{}])])
save_graphs("csc.dgl", [graph([4], [unit_graph("i", 4, turned, CSC)], [ndata], [{}])])

# The graph of tinyRelational in ogb_relational_test.go, with an edge type in each format.
def relation(kind, types, between, n, pairs, format):
    meta = meta_graph(types, (between,))
    out = u64(0xDD2E60F0F6B4A127) + struct.pack("<qq", format | 1 << 32, 7 | 1 << 32) + meta
    if format == COO:
        return out + coo_matrix(kind, n[0], n[1], [p[0] for p in pairs], [p[1] for p in pairs])
    by = format == CSC
    return out + csr_matrix(kind, n[by], n[1 - by], *rows_of(pairs, n[by], by))


writes, cites = [(0, 0), (1, 1), (2, 3), (0, 2)], [(0, 1), (1, 2), (3, 0)]
for name, format in ("hetero.dgl", COO), ("heterocsr.dgl", CSR), ("heterocsc.dgl", CSC):
    edges = [relation("q", 1, (0, 0), (4, 4), cites, format), relation("q", 2, (0, 1), (3, 4), writes, format)]
    save_graphs(name, [graph([3, 4], edges, [{"year": array("q", [1, 2, 3])}, ndata],
                             [{}, {"feat": array("f", [1] * 8, [4, 2])} if format == CSR else {}], ("author", "paper"), ("cites", "writes"),
                             meta_graph(2, ((1, 1), (0, 1))))])
