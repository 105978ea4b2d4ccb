// Package spot reproduces the simulations of Bamboo (NSDI'23, §3.3 and §3.6 in the author's thesis),
// models its pipelines, and compares all systems of package slurm/spot with the same traces.
//
// A part is a table or figure, with the paper's numbers beside ours. Nothing is trained: the
// iteration times of the paper's networks are inputs. Equal seeds give equal pages. Only the part pause
// trains, and kills ranks: it measures the time until the run continues.
package spot
