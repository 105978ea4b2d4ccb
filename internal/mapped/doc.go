// Package mapped allocates large arrays outside the garbage-collected heap, and
// maps files as arrays.
//
// An Arena allocates zeroed arrays of anonymous memory, with huge pages if the
// kernel has them, and frees them all at once. Access to an array after
// Arena.Free crashes. A failed allocation panics; Catch turns the panic into a
// fault at the entry of a rank, a task or a command. A sketch is an Arena that
// counts arrays without memory. Arena.Spill moves arrays of some purposes to a file
// without a name, as shared mappings. A File is a whole file mapped for reading. Fetch reads
// parts of both kinds of files before they are used, and reports unreadable pages as faults. A Pool does the
// same past the page cache, for passes over more data than memory. Under the race
// detector, which does not track mapped memory, arrays are on the heap.
//
// Bytes and Cast reinterpret memory as another type. The machine must be
// little-endian, as all files of siafu are.
package mapped
