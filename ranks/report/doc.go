// Package report compares runs as a table, CSV or JSON: one line per run, or per group of
// runs with means and deviations. Settings that differ between the runs have columns.
package report
