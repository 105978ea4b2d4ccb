"""Metrics of links, written down again in NumPy after OGB's evaluators (ogb.linkproppred):
Hits@K of ogbl-collab, ogbl-ddi and ogbl-ppa, MRR of ogbl-citation2; AUC and average
precision by their definitions. Exit status 3: there is no NumPy."""
import json
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(3)


def metrics(x):
    edges, without = np.array(x["Edges"]), np.array(x["Without"])
    each = np.array(x["Each"]).reshape(len(edges), -1)
    higher = edges[:, None] > without[None, :]
    equal = edges[:, None] == without[None, :]
    out = {"roc_auc": float(np.mean(higher + 0.5 * equal))}
    precision = 0.0
    for s in edges:  # each edge adds a step of recall, at the precision of its score
        precision += np.sum(edges >= s) / (np.sum(edges >= s) + np.sum(without >= s))
    out["average_precision"] = float(precision / len(edges))
    for k in 10, 20, 50, 100:
        if len(without) >= k:  # the evaluators give 1 for fewer
            out["hits@%d" % k] = float(np.mean(edges > np.sort(without)[-k]))
    optimistic = (each > edges[:, None]).sum(axis=1)
    pessimistic = (each >= edges[:, None]).sum(axis=1)
    out["mrr"] = float(np.mean(1 / (0.5 * (optimistic + pessimistic) + 1)))
    return out


json.dump([metrics(x) for x in json.load(sys.stdin)], sys.stdout)
