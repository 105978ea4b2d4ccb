// Package report compares runs: a line each, or groups of them with means and
// deviations, as a table, CSV or JSON. Settings stand in columns where the runs differ
// in them.
package report
