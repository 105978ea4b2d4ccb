"""Train graph neural networks with the program siafu; docs/python.md is the tutorial.

    run = siafu.train(data, model="gcn", ranks=4, hidden=64)

This module writes a graph in a format that `siafu import` reads, starts the program and reads the files of the
run folder. It needs NumPy; only Run.torch needs PyTorch.

Keywords are flags of the program: weight_decay=5e-4 is --weight-decay=5e-4, True is --flag, False is
--flag=false, a list has commas between its items, and None omits the flag. lambda_ is --lambda, because lambda is
a keyword of Python.
"""
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import weakref
from collections.abc import Mapping

import numpy as np

__all__ = ["train", "dataset", "run", "Run", "Dataset", "Predictions", "Error"]


class Error(RuntimeError):
    """A run of the program failed. `code` is its exit code (docs/commands.md lists the codes)."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def train(data, *, x=None, y=None, split=None, launch=None, quiet=False, **flags):
    """Trains a network with `siafu train` and returns its Run.

    data is a dataset folder, or a graph that `dataset` accepts together with x, y and split. flags are the flags of
    `siafu train`; out=DIR is the run folder. launch=N trains on N ranks under mpirun, with `siafu launch`; this
    needs a program with MPI (environment variable SIAFU). quiet=True prints nothing.

    Ctrl-C stops the run after the current epoch and raises KeyboardInterrupt. The run has then saved a
    checkpoint, from which the same call with out=DIR and resume="auto" continues. A second Ctrl-C ends the run at once.
    """
    if not _is_path(data):
        data = dataset(data, x=x, y=y, split=split, quiet=quiet)
    elif any(value is not None for value in (x, y, split)):
        raise ValueError("x, y and split describe a graph in memory, but data is the folder %s" % os.fspath(data))
    command = ["train"] if launch is None else ["launch", "--ranks=%d" % launch, "train"]
    output = _execute([*command, *_flags({**flags, "log_format": "fields"}), os.fspath(data)], quiet)
    result = Run(re.search("^siafu version=.*? run=(.*)$", output, re.MULTILINE)[1], data)
    if not quiet:
        print(result, flush=True)
    return result


def dataset(data, folder=None, *, x=None, y=None, split=None, quiet=False, **flags):
    """Imports a graph with `siafu import` and returns its Dataset.

    data is one of
      - a Data of PyTorch Geometric, or a mapping with the same names: x, edge_index, y, train_mask, …;
      - a homogeneous graph of DGL: ndata feat, label, train_mask, …, edata weight, feat;
      - a SciPy matrix [n, n] whose entry (u, v) is an edge from u to v; x and y are then required;
      - a path of files in a format of `siafu import`.

    x [n, features] and y [n] or [n, columns] replace those of data. Integers y are classes, -1 for none; columns of 0
    and 1 are labels; a single column of floats is a target of a regression. split is a mapping of train, val and
    test to masks [n] or vertex numbers, or the number of a column of masks [n, splits]; without masks the split is
    random.

    folder is the dataset folder; None is a temporary folder, which lives as long as the Dataset. flags are
    the flags of `siafu import`: symmetrise=True, standardise=True, task="multiclass".
    """
    result = Dataset(folder)
    if split is not None and not isinstance(split, Mapping):
        flags["split"], split = split, None
    if _is_path(data):
        if any(value is not None for value in (x, y, split)):
            raise ValueError("x, y and split describe a graph in memory, but data is the path %s" % os.fspath(data))
        _execute(["import", *_flags(flags), os.fspath(data), result.folder], quiet)
        return result
    arrays = _arrays(data, x, y, split)
    labels = arrays.get("y")
    if labels is not None and labels.dtype.kind == "f" and labels.size == len(labels):
        flags.setdefault("task", "regression")
    with tempfile.TemporaryDirectory(prefix="siafu-") as source:
        file = os.path.join(source, "graph.npz")
        np.savez(file, **arrays)
        del arrays, labels
        _execute(["import", "--from=npz", *_flags(flags), file, result.folder], quiet)
    return result


def run(command, *arguments, **flags):
    """Runs any command and returns its output as a text: run("plan", "data/cora", ranks=4)."""
    return _execute([*command.split(), *_flags(flags), *map(os.fspath, arguments)], quiet=True)


class Dataset(os.PathLike):
    """A dataset folder. Without a folder it is a temporary one, which is removed with the Dataset."""

    def __init__(self, folder=None):
        if folder is None:
            temporary = tempfile.mkdtemp(prefix="siafu-")
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
            folder = os.path.join(temporary, "graph")
        self.folder = os.fspath(folder)

    def __fspath__(self):
        return self.folder

    def __repr__(self):
        return "Dataset(%r)" % self.folder


class Predictions:
    """What `siafu predict` wrote, row i for vertex i of the graph; docs/commands.md describes the arrays.

    predictions: classes [n], labels [n, labels] or numbers [n, columns]; None for links
    probabilities [n, classes or labels], or None
    logits, embeddings: or None; with logits=True and embeddings=True
    metrics: of the labelled vertices, by split
    """

    def __init__(self, folder):
        for name in ("predictions", "probabilities", "logits", "embeddings"):
            file = os.path.join(folder, name + ".npy")
            setattr(self, name, np.load(file) if os.path.exists(file) else None)
        self.metrics = _read_json(os.path.join(folder, "metrics.json"))


class Run:
    """A run folder with a trained network. data is its dataset folder, which `predictions` needs."""

    def __init__(self, folder, data=None):
        self.folder, self._data, self._own = os.fspath(folder), data, None
        self.summary = _read_json(os.path.join(self.folder, "summary.json"))

    @property
    def metrics(self):
        """Metrics of the best weights by split, such as metrics["test"]["accuracy"]. Empty with tensor="lambda"."""
        return self.summary.get("metrics", {})

    @property
    def history(self):
        """Numbers of the epochs: a dict of arrays [epochs], such as history["val_acc"]; NaN if an epoch has none."""
        with open(os.path.join(self.folder, "metrics.jsonl"), encoding="utf-8") as file:
            epochs = [json.loads(line) for line in file]
        names = {name: None for epoch in epochs for name, value in epoch.items() if isinstance(value, (int, float))}
        return {name: np.array([epoch.get(name, np.nan) for epoch in epochs]) for name in names}

    @property
    def predictions(self):
        """Predictions for the vertices of the training graph, in their order."""
        return self._predicted().predictions

    @property
    def probabilities(self):
        """Probabilities of the classes or labels of these vertices, or None."""
        return self._predicted().probabilities

    def _predicted(self):
        if self._own is None:
            if self._data is None:
                raise ValueError("the dataset of %s is unknown; use Run(folder, data) or predict(data)" % self.folder)
            self._own = self.predict(self._data, quiet=True)
        return self._own

    def predict(self, data, *, x=None, quiet=False, **flags):
        """Predictions for the vertices of a graph, which `train` accepts; labels are optional.

        The graph must be imported as the training graph was: see `dataset`. flags are the flags of `siafu predict`. Without
        out=DIR the predictions are not stored."""
        if not _is_path(data):
            data = dataset(data, x=x, quiet=quiet)
        with tempfile.TemporaryDirectory(prefix="siafu-") as out:
            flags = flags if "out" in flags else {"csv": False, **flags, "out": os.path.join(out, "predictions")}
            _execute(["predict", *_flags(flags), self.folder, os.fspath(data)], quiet)
            return Predictions(flags["out"])

    def torch(self):
        """The network as a torch.nn.Module in evaluation mode: logits = net(x, edge_index, edge_weight, edge_attr).

        `siafu export` writes the module to model.py of the run folder; docs/weights.md describes the module."""
        run("export", self.folder, pytorch=True)
        spec = importlib.util.spec_from_file_location("siafu_model", os.path.join(self.folder, "model.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.load()

    def __repr__(self):
        s = self.summary
        score = "test %s %.4f" % (s["metric"], s["test_acc_at_best_val"])
        return "Run(%r: %s, %d epochs, %s)" % (self.folder, s["model"], s["epochs"], score)


# The program


def _program():
    """The path of siafu: $SIAFU, else the program of the wheel, else in PATH."""
    if os.environ.get("SIAFU"):
        return os.environ["SIAFU"]
    user = sysconfig.get_path("scripts", os.name + "_user")  # pip install --user
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")  # pip install --target
    found = shutil.which("siafu", path=os.pathsep.join([sysconfig.get_path("scripts"), user, target])) or shutil.which("siafu")
    if not found:
        raise FileNotFoundError("cannot find the program siafu beside this Python or in PATH; set SIAFU to its path")
    return found


def _flags(keywords):
    """The arguments of the program for keywords of Python."""
    arguments = []
    for name, value in keywords.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif value is False:
            arguments.append(flag + "=false")
        elif value is not None:
            items = value if isinstance(value, (list, tuple)) else [value]
            arguments.append("%s=%s" % (flag, ",".join(os.fspath(item) if _is_path(item) else str(item) for item in items)))
    return arguments


def _execute(arguments, quiet):
    """Runs the program, shows its progress and returns its output without the lines of epochs."""
    process = subprocess.Popen([_program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    progress, lines, interrupted = _Progress(quiet), [], False
    try:
        while process.returncode is None:
            try:
                for line in process.stdout:
                    progress.show(line.rstrip("\n"))
                    if not line.startswith("epoch="):
                        lines.append(line.rstrip("\n"))
                process.wait()
            except KeyboardInterrupt:
                # The terminal may have sent the signal to the program, too, which ignores a repetition within half a second.
                interrupted = True
                process.send_signal(signal.SIGINT)
    finally:
        progress.end()
        if process.poll() is None:  # an error of this module or of its output
            process.terminate()
            process.wait()
        process.stdout.close()
    if process.returncode == 0 and not interrupted:
        return "\n".join(lines)
    # The program's message is one line. After a crash without a message, show the end of the output.
    own = [line[len("siafu: "):] for line in lines if line.startswith("siafu: ") and not line.startswith("siafu: warning")]
    message = own[-1] if own else "\n".join(lines[-20:]) or "siafu %s ended with code %d" % (arguments[0], process.returncode)
    if interrupted:
        raise KeyboardInterrupt(message)
    raise Error(message, process.returncode)


class _Progress:
    """One line that is overwritten at each epoch, on terminals and in notebooks, and all warnings."""

    def __init__(self, quiet):
        self.quiet, self.width = quiet, 0
        self.live = not quiet and (sys.stdout.isatty() or "ipykernel" in sys.modules)

    def show(self, line):
        if self.live and line.startswith("epoch="):
            fields = re.findall(r"(\S+?)=(\S+)", line)
            self.write("  ".join("%s %s" % f for f in fields if f[0] in ("epoch", "loss", "left") or f[0].startswith("val_")))
        elif not self.quiet and "warning" in line:
            self.end()
            print(line, flush=True)

    def write(self, text):
        sys.stdout.write("\r" + text.ljust(self.width))
        sys.stdout.flush()
        self.width = len(text)

    def end(self):
        """Removes the line."""
        if self.width:
            self.write("")
            self.write("")


# Graphs in memory


# The arrays of a graph, with PyTorch Geometric's names, and DGL's names of the same arrays.
_VERTICES = {"x": ("feat", "features", "x"), "y": ("label", "labels", "y"), "train_mask": ("train_mask",),
             "val_mask": ("val_mask",), "test_mask": ("test_mask",), "ids": ("ids",)}
_EDGES = {"edge_weight": ("weight", "edge_weight", "w"), "edge_attr": ("feat", "features", "edge_attr")}
_NAMES = (*_VERTICES, *_EDGES, "edge_index", "class_names")


def _arrays(data, x=None, y=None, split=None):
    """The arrays of a graph as `siafu import --from npz` reads them. Their shapes have been checked."""
    if isinstance(data, Mapping):
        arrays = {name: data.get(name) for name in _NAMES}
    elif hasattr(data, "ndata"):
        arrays = _from_dgl(data)
    elif hasattr(data, "tocoo"):
        arrays = _from_scipy(data)
    else:
        arrays = {name: getattr(data, name, None) for name in _NAMES}
    if arrays.get("edge_index") is None:
        raise TypeError("%s is not a graph that siafu can read; expected a Data of PyTorch Geometric or a mapping with x and edge_index, "
                        "a homogeneous graph of DGL, a SciPy matrix, or a folder" % type(data).__name__)
    arrays.update({name: value for name, value in (("x", x), ("y", y)) if value is not None})
    if arrays.get("x") is None:
        raise ValueError("x is missing; expected the features of the vertices, [vertices, columns]")
    if split is not None:
        arrays = {name: value for name, value in arrays.items() if not name.endswith("_mask")}
    arrays = {name: _array(value) for name, value in arrays.items() if value is not None}
    arrays["x"] = arrays["x"].astype(np.float32, copy=False)
    for name in ("x", "edge_index"):
        _check(name, arrays[name], None)
    n, m = len(arrays["x"]), arrays["edge_index"].shape[1]
    arrays.update(_masks(split or {}, n))
    for name, value in arrays.items():
        _check(name, value, m if name in _EDGES else n)
    return arrays


def _from_dgl(graph):
    if not getattr(graph, "is_homogeneous", True):
        raise ValueError("the graph has several types of vertices or edges; use dgl.to_homogeneous")
    arrays = {"edge_index": np.stack([_array(ends) for ends in graph.edges()])}
    for names, frame in ((_VERTICES, graph.ndata), (_EDGES, graph.edata)):
        for name, keys in names.items():
            arrays[name] = next((frame[key] for key in keys if key in frame), None)
    return arrays


def _from_scipy(matrix):
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError("the matrix has shape %s; expected a square matrix of edges" % (matrix.shape,))
    entries = matrix.tocoo()
    arrays = {"edge_index": np.stack([entries.row, entries.col])}
    if (entries.data != 1).any():
        arrays["edge_weight"] = entries.data
    return arrays


def _array(value):
    """A NumPy array of an array, a sparse matrix or a tensor of PyTorch."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.to_dense() if "sparse" in str(value.layout) else value
        return (value.float() if "bfloat16" in str(value.dtype) else value).numpy()
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


def _masks(split, n):
    """Masks [n] of a mapping of train, val or valid, and test to masks or vertex numbers."""
    masks = {}
    for name, value in split.items():
        key = {"valid": "val"}.get(name, name) + "_mask"
        if key not in _VERTICES:
            raise ValueError("split has the name %r; expected train, val and test" % (name,))
        value = masks[key] = _array(value)
        if value.dtype != bool:
            masks[key] = np.zeros(n, bool)
            if value.size and (value.dtype.kind not in "iu" or value.min() < 0 or value.max() >= n):
                raise ValueError("split[%r] is neither a mask nor vertex numbers from 0 to %d" % (name, n - 1))
            masks[key][value.astype(np.int64)] = True
    return masks


def _check(name, value, rows):
    """Raises ValueError if an array does not have the shape that its name requires: of vertices and edges `rows` rows."""
    shape = value.shape
    if name == "x":
        fits, expected = len(shape) == 2, "(vertices, columns)"
    elif name == "edge_index":
        fits, expected = len(shape) == 2 and shape[0] == 2, "(2, edges): a row of sources and a row of destinations"
    elif name == "class_names":
        fits, expected = len(shape) == 1, "(classes,)"
    else:
        fits = len(shape) in (1, 2) and shape[0] == rows
        expected = "(%d,) or (%d, columns): a row for each %s" % (rows, rows, "edge" if name in _EDGES else "row of x")
    if not fits:
        raise ValueError("%s has shape %s; expected %s" % (name, shape, expected))


def _is_path(data):
    return isinstance(data, (str, os.PathLike))


def _read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
