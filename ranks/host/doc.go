// Package host says what the machine under a rank can give: memory that is
// available within the control groups of the process, and what it has taken.
package host
