// Package link measures what lies between the ranks of a world: how long a
// small message takes from one to another, and how many bytes a second a large
// one moves. "siafu doctor" prints it, and a choice of codec can be made by it.
package link
