// Package bill is what computing costs: the dated prices of instances and of Lambda,
// the dollars that hours and GB-seconds come to, and the value of a run (Dorylus,
// OSDI'21, §7.1). Sums are exact: prices are decimal fractions, times are whole
// nanoseconds, and nothing is rounded but what a service rounds itself.
//
// The prices are in prices.tsv, which is part of the program, each with its date and
// source. A bill knows neither free tiers and volume discounts nor storage and traffic.
//
// Nothing here communicates, or is safe for several goroutines.
package bill
