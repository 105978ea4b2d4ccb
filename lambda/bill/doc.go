// Package bill computes what a run costs: the dated prices of instances and of Lambda, the dollars
// for hours and GB-seconds, and the value of a run (Dorylus, OSDI'21, §7.1). Sums of invocations are
// exact: prices are decimal fractions, and times are whole nanoseconds. Only durations that a service
// rounds are rounded.
//
// The prices are in prices.tsv, which is embedded in the program. Each has its date and source. A
// bill does not include free tiers, volume discounts, storage and traffic.
//
// Nothing here communicates or is safe for concurrent use.
package bill
