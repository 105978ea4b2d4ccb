// Package stopping is when training ends, and with which weights: after patience
// with the validation accuracy, loss or metric, at a target accuracy, and where the
// weights give no numbers any more.
//
// A History sees the line of each evaluated epoch and its weights, in their
// order. It communicates with nobody: ranks whose histories have seen the same
// decide the same, and one that was saved goes on as if it had not been.
package stopping
