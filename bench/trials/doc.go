// Package trials trains in processes of their own and reads what they leave: on this
// machine as it is, or under mpirun on hosts made of it, whose links have a chosen
// rate (package hosts).
package trials
