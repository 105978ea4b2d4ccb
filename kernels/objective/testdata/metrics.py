# Metrics of scikit-learn for each case on standard input, as JSON on standard output;
# exit code 3 without scikit-learn.
import json, sys

try:
    import numpy as np
    from sklearn import metrics as m
except ImportError:
    sys.exit(3)


def metrics(d):
    y, z = np.array(d["truth"]), np.array(d["logits"], dtype=np.float32)
    if d["task"] == "multiclass":
        p = z.argmax(1)
        out = {"accuracy": m.accuracy_score(y, p), "balanced_accuracy": m.balanced_accuracy_score(y, p)}
    elif d["task"] == "multilabel":
        p = z > 0
        areas = [m.roc_auc_score(y[:, c], z[:, c]) for c in range(y.shape[1]) if 0 < y[:, c].sum() < len(y)]
        out = {"roc_auc": float(np.mean(areas))}
    else:
        out = {"mse": m.mean_squared_error(y, z), "mae": m.mean_absolute_error(y, z), "r2": m.r2_score(y, z)}
    if d["task"] != "regression":
        for average in "micro", "macro", "weighted":
            out[average + "_f1"] = m.f1_score(y, p, average=average, zero_division=0)
        out["per_class"] = per_class(y, p, z.shape[1])
    return out


def per_class(y, p, classes):
    names = "precision", "recall", "f1", "support"
    each = m.precision_recall_fscore_support(y, p, labels=range(classes), zero_division=0)
    out = {name: list(map(float, x)) for name, x in zip(names, each)}
    for average in "micro", "macro", "weighted":
        x = m.precision_recall_fscore_support(y, p, average=average, zero_division=0)
        out[average + "_avg"] = dict(zip(names, x[:3]))
    if y.ndim == 1:
        matrix = m.confusion_matrix(y, p, labels=range(classes))
        out["confusion"] = matrix.tolist()
        out["predicted"] = matrix.sum(axis=0).tolist()
    else:
        out["predicted"] = p.sum(axis=0).tolist()
    return out


print(json.dumps([metrics(d) for d in json.load(sys.stdin)]))
