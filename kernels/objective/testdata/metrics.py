# Metrics of scikit-learn for each case on standard input, as JSON on standard output;
# exit code 3 where there is no scikit-learn.
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
        out = {"accuracy": m.accuracy_score(y, p)}
    elif d["task"] == "multilabel":
        p = z > 0
        areas = [m.roc_auc_score(y[:, c], z[:, c]) for c in range(y.shape[1]) if 0 < y[:, c].sum() < len(y)]
        out = {"roc_auc": float(np.mean(areas))}
    else:
        out = {"mse": m.mean_squared_error(y, z), "mae": m.mean_absolute_error(y, z), "r2": m.r2_score(y, z)}
    if d["task"] != "regression":
        for average in "micro", "macro":
            out[average + "_f1"] = m.f1_score(y, p, average=average, zero_division=0)
    return out


print(json.dumps([metrics(d) for d in json.load(sys.stdin)]))
