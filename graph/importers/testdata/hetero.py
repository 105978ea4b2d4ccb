"""Writes the hetero*.pt files in this folder: the graph of tinyRelational in ogb_relational_test.go.

They were written by PyTorch 1.13 with PyTorch Geometric 2.3 (hetero.pt) and 2.5 (the others):
PYTHONPATH=SOURCES_OF_PYG python3 hetero.py. Packages that only other parts of PyTorch Geometric use may be missing.
"""
import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tqdm", "fsspec", "aiohttp", "psutil", "sklearn", "jinja2", "scipy", "pandas", "requests"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        m = MagicMock()
        m.__spec__, m.__path__, m.__name__ = spec, [], spec.name
        return m

    def exec_module(self, module):
        pass


sys.meta_path.append(Missing())
import torch
import torch_geometric
from torch_geometric.data import HeteroData, InMemoryDataset


def tiny():
    d = HeteroData()
    d["author"].num_nodes = 3
    d["paper"].x = torch.arange(1.0, 9.0).reshape(4, 2)
    d["paper"].y = torch.tensor([0, 1, 1, 0])
    d["paper"].year = torch.tensor([2001, 2002, 2018, 2019])
    for name, vertices in (("train_mask", [0, 1]), ("val_mask", [2]), ("test_mask", [3])):
        d["paper"][name] = torch.zeros(4, dtype=torch.bool)
        d["paper"][name][vertices] = True
    d["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 0], [0, 1, 3, 2]])
    d["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 3], [1, 2, 0]])
    return d


if torch_geometric.__version__.startswith("2.3."):
    torch.save(tiny(), "hetero.pt")
else:
    d = tiny()
    del d["author"].num_nodes  # then the number is that of the ids in edges
    torch.save((d.to_dict(), None, HeteroData), "heterodict.pt")
    d, slices = InMemoryDataset.collate([tiny(), tiny()])
    torch.save((d.to_dict(), slices, HeteroData), "heteropair.pt")
    d = tiny()
    d["author", "writes", "paper"].edge_attr = torch.tensor([1.0, 2.0, 3.0, 4.0])
    torch.save(d, "heteroattr.pt")
