// Package realdata finds the real graphs that tests train on. They are not part of siafu: a test
// that needs a missing graph is skipped and reports the search path.
//
// The search path is $SIAFU_TESTDATA, else a folder named data inside
// any folder next to the checkout. A graph is a folder NAME or an archive
// NAME.tar.zst in the raw layout that "siafu import --from raw" reads.
package realdata
