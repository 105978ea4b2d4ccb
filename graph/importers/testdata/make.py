"""Writes the files of torch.save in this folder: the tiny graph of helper_test.go.

They were written by PyTorch 1.13 (Debian 12: /usr/bin/python3 make.py). The classes are
stand-ins that keep what PyTorch Geometric 1.7 and 2.5 keep, under its names.
"""
import sys
import types

import torch


def module(name):
    m = types.ModuleType(name)
    sys.modules[name] = m
    return m


for name in ["torch_geometric", "torch_geometric.data"]:
    module(name)
data, storage = module("torch_geometric.data.data"), module("torch_geometric.data.storage")


def stand_in(where, name):
    made = type(name, (), {"__module__": where.__name__})
    setattr(where, name, made)
    return made


Data, GlobalStorage = stand_in(data, "Data"), stand_in(storage, "GlobalStorage")
stand_in(data, "DataTensorAttr"), stand_in(data, "DataEdgeAttr")


def graph2(mapping):
    d, store = Data(), GlobalStorage()
    store.__dict__.update(_mapping=mapping, _parent=d)
    d.__dict__.update(_tensor_attr_cls=data.DataTensorAttr, _edge_attr_cls=data.DataEdgeAttr, _store=store)
    return d


x = torch.arange(1.0, 9.0).reshape(4, 2)
pairs = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 0]])
y = torch.tensor([0, 1, 1, 0])


def mask(*vertices):
    m = torch.zeros(4, dtype=torch.bool)
    m[list(vertices)] = True
    return m


masks = {"train_mask": mask(0, 1), "val_mask": mask(2), "test_mask": mask(3)}

# A Data of version 2 as it is; edge_index is the transpose of a list of pairs, and so its
# elements lie in columns. Masks of two splits, and one of test vertices.
torch.save(graph2({
    "x": x, "edge_index": pairs.t(), "y": y.reshape(4, 1), "num_nodes": 4, "ids": ["a", "b", "c", "d"], "name": "Tiny",
    "train_mask": torch.stack([mask(2), mask(0, 1)], dim=1), "val_mask": torch.stack([mask(1), mask(2)], dim=1), "test_mask": mask(3),
}), "data.pt")

# What an InMemoryDataset keeps: (data, slices).
torch.save((graph2(dict(masks, x=x.double(), edge_index=pairs.t().contiguous().int(), y=y.to(torch.int8))), {
    "x": torch.tensor([0, 4]), "edge_index": torch.tensor([0, 4]), "y": torch.tensor([0, 4]),
}), "pair.pt")

# The same since version 2.4, of a part of larger tensors: (dict, slices, class).
torch.save((dict(masks, x=torch.cat([x, x], dim=1)[:, :2].to(torch.bfloat16), edge_index=torch.cat([pairs, pairs], dim=1)[:, :2].t(), y=y), None, Data), "dict.pt")

# A Data of version 1.
old = Data()
old.__dict__.update(masks, x=x.half(), edge_index=pairs.t().contiguous(), edge_attr=None, y=y, pos=None, __num_nodes__=4)
torch.save(old, "old.pt")

# In the format before version 1.6.
torch.save({"x": x}, "legacy.pt", _use_new_zipfile_serialization=False)
