// Package stopping decides when training ends, and which weights are the best: after
// patience with the validation accuracy, loss or metric, at a target accuracy, and when the
// weights diverge.
//
// A History gets the line of each evaluated epoch and its weights, in order. It does not
// communicate: ranks with the same inputs decide the same. A History that was saved and
// restored continues unchanged.
package stopping
