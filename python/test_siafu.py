"""Tests of siafu.py with the program that SIAFU names: python3 -m unittest discover python"""
import io
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import numpy as np

import siafu

try:
    import torch
except ImportError:
    torch = None
try:
    import scipy.sparse as sparse
except ImportError:
    sparse = None
try:
    import torch_geometric
except ImportError:
    torch_geometric = None

with_torch = unittest.skipIf(torch is None, "no PyTorch: install python3-torch")

N = 400


def relayed():
    """A directed graph: the class of a vertex is the feature of the only source of an edge to it."""
    random = np.random.default_rng(5)
    source, feature = random.permutation(N), random.integers(0, 3, N)
    return {"x": np.eye(3)[feature], "edge_index": np.stack([source, np.arange(N)]), "y": feature[source]}


def random_graph(**more):
    """A directed graph without self loops and repeated edges, which PyTorch Geometric would gather."""
    random = np.random.default_rng(6)
    ends = np.unique(random.integers(0, N, (2, 6 * N)), axis=1)
    graph = {"x": random.normal(size=(N, 5)), "edge_index": ends[:, ends[0] != ends[1]], "y": random.integers(0, 3, N)}
    return {**graph, **more}


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestSiafu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def train(self, data, **flags):
        return siafu.train(data, quiet=True, **{"epochs": 60, "lr": 0.1, "dropout": 0, "layers": 1, "model": "sage", **flags})

    def test_keywords(self):
        for keyword, value, flags in (
            ("weight_decay", 5e-4, ["--weight-decay=0.0005"]), ("servers", -1, ["--servers=-1"]), ("recompute", True, ["--recompute"]),
            ("csv", False, ["--csv=false"]), ("init", None, []), ("layer_kinds", ["gcn", "sage"], ["--layer-kinds=gcn,sage"]),
            ("lambda_", "local", ["--lambda=local"]),
        ):
            self.assertEqual(siafu._flags({keyword: value}), flags)

    def test_direction(self):
        """Vertices gather from the sources of edges, on one rank and on three."""
        graph = relayed()
        for ranks in (1, 3):
            run = self.train(graph, ranks=ranks, servers=0)
            self.assertEqual(run.metrics["test"]["accuracy"], 1)
            np.testing.assert_array_equal(run.predictions, graph["y"])
            np.testing.assert_array_equal(run.probabilities.argmax(1), graph["y"])
        back = self.train({**graph, "edge_index": graph["edge_index"][::-1]})
        self.assertLess((back.predictions == graph["y"]).mean(), 0.7)

    def test_forms_of_a_graph(self):
        graph = relayed()
        x, ends, y = graph["x"], graph["edge_index"], graph["y"]
        train = np.arange(N) % 2 == 0
        split = {"train": train, "valid": np.flatnonzero(np.arange(N) % 4 == 1), "test": np.flatnonzero(np.arange(N) % 4 == 3)}
        masks = {name + "_mask": np.isin(np.arange(N), rows) for name, rows in
                 (("train", np.flatnonzero(train)), ("val", split["valid"]), ("test", split["test"]))}
        data = types.SimpleNamespace(**graph, **masks)  # as a Data of PyTorch Geometric
        # Stands in for DGL, which this test does not have.
        dgl = types.SimpleNamespace(ndata={"feat": x, "label": y, **masks}, edata={}, edges=lambda: (ends[0], ends[1]), num_nodes=lambda: N)
        forms = {"mapping": (graph, {"split": split}), "object": (data, {}), "dgl": (dgl, {}), "dgl, own split": (dgl, {"split": split}),
                 "columns of masks": (dict(graph, **{k: np.stack([np.roll(m, 1), m], 1) for k, m in masks.items()}), {"split": 1})}
        if sparse:
            matrix = sparse.coo_matrix((np.ones(N), ends), (N, N))
            forms["SciPy"] = (matrix, {"x": sparse.csr_matrix(x), "y": y, "split": split})
        if torch:
            forms["tensors"] = ({k: torch.tensor(v) for k, v in vars(data).items()}, {})
        want = self.train(graph, split=split)
        info = json.loads(siafu.run("info", want._data, json=True))
        self.assertEqual([info[name] for name in ("train", "val", "test")], [200, 100, 100])
        for name, (form, arguments) in forms.items():
            with self.subTest(name):
                got = self.train(form, **arguments)
                np.testing.assert_array_equal(got.history["loss"], want.history["loss"])
                np.testing.assert_array_equal(got.probabilities, want.probabilities)
        part = siafu.dataset(data, split={"train": [0, 1, 2]}, quiet=True)  # no masks of data
        info = json.loads(siafu.run("info", part, json=True))
        self.assertEqual([info[name] for name in ("train", "val", "test")], [3, 0, 0])
        stored = siafu.dataset(graph, "stored", split=split, quiet=True)
        np.testing.assert_array_equal(self.train("stored").history["loss"], want.history["loss"])
        self.assertEqual(os.fspath(stored), "stored")

    def test_edge_weights(self):
        graph = random_graph()
        ends, weights = graph["edge_index"], np.random.default_rng(8).uniform(1, 2, graph["edge_index"].shape[1])
        forms = [{**graph, "edge_weight": weights}, types.SimpleNamespace(
            ndata={"x": graph["x"], "y": graph["y"]}, edata={"w": weights}, edges=lambda: tuple(ends))]
        if sparse:
            forms.append(sparse.csr_matrix((weights, ends), (N, N)))
        losses = [self.train(form, x=graph["x"], y=graph["y"], epochs=5).history["loss"] for form in forms]
        for loss in losses[1:]:
            np.testing.assert_array_equal(loss, losses[0])
        self.assertFalse((self.train(graph, epochs=5).history["loss"] == losses[0]).all())

    def test_labels(self):
        x = np.random.default_rng(1).normal(size=(N, 3))
        for y, task, kind, shape in (
            (x @ [1, 2, 3], "regression", "f", (N, 1)),
            (np.round(x[:, :1]), "regression", "f", (N, 1)),
            (x[:, :2] + 0.5, "regression", "f", (N, 2)),
            ((x[:, :2] > 0).astype(float), "multilabel", "u", (N, 2)),
            (x[:, 0] > 0, "multiclass", "i", (N,)),
        ):
            with self.subTest(task=task, kind=y.dtype):
                run = self.train(random_graph(x=x, y=y), model="mlp", epochs=100)
                self.assertEqual((run.summary["trained_for"], run.predictions.dtype.kind), (task, kind))
                self.assertEqual(run.predictions.reshape(shape).size, y.size)
                error = np.abs(run.predictions.reshape(y.shape) - y).mean()
                self.assertLess(error, 0.5 * np.abs(y - np.median(y, 0)).mean())

    @with_torch
    def test_torch(self):
        """The exported network computes the program's logits on a directed graph, with weights and features of edges too."""
        graph = random_graph()
        m = graph["edge_index"].shape[1]
        random = np.random.default_rng(7)
        for model, more in (("gcn", {}), ("sage", {}), ("gat", {}), ("gcn", {"edge_weight": random.uniform(1, 2, m)}),
                            ("gatv2", {"edge_attr": random.normal(size=(m, 2))})):
            with self.subTest(model, more=list(more)):
                run = self.train({**graph, **more}, model=model, layers=2, epochs=5, ranks=2)
                got = run.predict(run._data, logits=True, embeddings=True)
                tensors = {k: torch.tensor(v, dtype=torch.float32) for k, v in more.items()}
                with torch.no_grad():
                    want = run.torch()(torch.tensor(graph["x"]).float(), torch.tensor(graph["edge_index"]), **tensors)
                np.testing.assert_allclose(got.logits, want.numpy(), atol=1e-5)  # sums in another order
                np.testing.assert_array_equal(got.predictions, want.argmax(1).numpy())
                self.assertEqual(got.embeddings.shape, (N, 16))

    @with_torch
    def test_tensors(self):
        values = torch.tensor([[0, 1.5], [2, 0]])
        for value in (values, values.bfloat16(), values.to_sparse(), values.requires_grad_()):
            np.testing.assert_array_equal(siafu._array(value), [[0, 1.5], [2, 0]])

    @unittest.skipIf(torch_geometric is None, "no PyTorch Geometric")
    def test_pytorch_geometric(self):
        """A Data is accepted, and its SAGEConv with the trained weights computes the program's logits."""
        graph = random_graph()
        data = torch_geometric.data.Data(**{k: torch.tensor(v) for k, v in graph.items()})
        data.x = data.x.float()
        run = self.train(data, epochs=5)
        conv, weights = torch_geometric.nn.SAGEConv(5, 3), run.torch().weights
        conv.load_state_dict({"lin_l.weight": weights["layers_0_weight"].t(), "lin_l.bias": weights["layers_0_bias"],
                              "lin_r.weight": weights["layers_0_self_weight"].t()})
        logits = run.predict(data, logits=True).logits
        np.testing.assert_allclose(logits, conv(data.x, data.edge_index).detach().numpy(), atol=1e-5)

    def test_predict_on_another_graph(self):
        graph = relayed()
        run = siafu.Run(self.train(graph).folder)
        with self.assertRaisesRegex(ValueError, "the dataset of .* is unknown"):
            run.predictions
        order = np.random.default_rng(2).permutation(N)
        other = {"x": graph["x"][order], "edge_index": np.argsort(order)[graph["edge_index"]]}
        got = run.predict(other, quiet=True, out="predictions", csv=True)
        np.testing.assert_array_equal(got.predictions, graph["y"][order])
        self.assertTrue(os.path.exists("predictions/predictions.csv"))

    def test_bad_shapes(self):
        graph = relayed()
        for change, message in (
            ({"x": np.ones(N)}, r"x has shape \(400,\); expected \(vertices, columns\)"),
            ({"x": None}, "x is missing"),
            ({"edge_index": graph["edge_index"].T}, r"edge_index has shape \(400, 2\); expected \(2, edges\)"),
            ({"y": np.ones(7)}, r"y has shape \(7,\); expected \(400,\) or \(400, columns\): a row for each row of x"),
            ({"edge_weight": np.ones(7)}, r"edge_weight has shape \(7,\).* a row for each edge"),
            ({"split": {"train": np.ones(7, bool)}}, r"train_mask has shape \(7,\)"),
            ({"split": {"train": [1, N]}}, r"split\['train'\] is neither a mask nor vertex numbers from 0 to 399"),
            ({"split": {"dev": [1]}}, "split has the name 'dev'"),
        ):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                split = change.pop("split", None)
                self.train({**graph, **change}, split=split)
        with self.assertRaisesRegex(ValueError, "data is the folder"):
            self.train("folder", y=graph["y"])
        with self.assertRaisesRegex(TypeError, "list is not a graph"):
            self.train([graph])
        if sparse:
            with self.assertRaisesRegex(ValueError, r"the matrix has shape \(2, 3\)"):
                self.train(sparse.csr_matrix((2, 3)), x=np.ones((2, 1)))

    def test_errors_of_the_program(self):
        for data, flags, code, message in (
            (relayed(), {"bogus": 1}, 64, "unknown flag --bogus"),
            (dict(relayed(), edge_index=np.full((2, 1), N)), {}, 65, "edge 0: source 400 is outside the vertices 0..399"),
            ("nowhere", {}, 66, "nowhere is not a dataset folder"),
            (relayed(), {"ranks": 2, "servers": 3}, 78, "^train: 3 servers in a world of 2 ranks leave 0 graph ranks"),
        ):
            with self.subTest(message), self.assertRaisesRegex(siafu.Error, message) as raised:
                self.train(data, **flags)
            self.assertEqual(raised.exception.code, code)

    def test_program(self):
        with mock.patch.dict(os.environ, SIAFU="/nowhere/siafu"), self.assertRaises(FileNotFoundError):
            siafu.run("version")
        with mock.patch.dict(os.environ, SIAFU="", PATH="/nowhere"), mock.patch("sysconfig.get_path", return_value="/nowhere"), \
                self.assertRaisesRegex(FileNotFoundError, "set SIAFU to its path"):
            siafu.run("version")

    def test_interrupt(self):
        """Ctrl-C saves a checkpoint, from which the same call continues."""
        # A job in the background of a shell ignores the signal, and the run would take all its epochs.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        stopped = threading.Event()

        def interrupt():
            file = "run/metrics.jsonl"
            while not stopped.is_set() and not (os.path.exists(file) and os.path.getsize(file)):
                time.sleep(0.01)
            if not stopped.is_set():
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with self.assertRaisesRegex(KeyboardInterrupt, "stopped after epoch .*--resume auto"):
                self.train(relayed(), out="run", epochs=10**7, eval_every=0)
        finally:
            stopped.set()
            thread.join()
        with open("run/metrics.jsonl", encoding="utf-8") as file:
            epochs = len(file.readlines())
        run = self.train(relayed(), out="run", epochs=epochs + 2, eval_every=0, resume="auto")
        np.testing.assert_array_equal(run.history["epoch"], np.arange(1, epochs + 3))

    def test_progress(self):
        for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
            with mock.patch("sys.stdout", stream):
                run = siafu.train(relayed(), epochs=5, eval_every=1)
            self.assertEqual(bool(re.search(r"\repoch 1/5  loss \S+  val_acc \S+  left \S+", stream.getvalue())), shown)
            self.assertEqual(stream.getvalue().splitlines()[-1], repr(run))
            self.assertRegex(repr(run), r"^Run\('runs/graph-[-0-9]+': gcn, 5 epochs, test accuracy \d\.\d{4}\)$")
            with mock.patch("sys.stdout", stream):
                siafu.dataset({**relayed(), "y": None})
            self.assertIn("warning: no vertex has a label", stream.getvalue().splitlines()[-1])

    def test_tutorial(self):
        """The first lines of docs/python.md run as they are written."""
        page = os.environ.get("SIAFU_TUTORIAL") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs/python.md")
        with open(page, encoding="utf-8") as file:
            blocks = re.findall(r"(?:^    .*\n|\n(?=    ))+", file.read(), re.MULTILINE)
        code = next(re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks if "import siafu" in block)
        if torch is None:
            code = "".join(line for line in code.splitlines(True) if "torch" not in line)
        names = {}
        with mock.patch("sys.stdout", io.StringIO()):
            exec(code, names)
        self.assertGreater(names["run"].metrics["test"]["accuracy"], 0.8)


if __name__ == "__main__":
    unittest.main()
