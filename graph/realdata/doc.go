// Package realdata finds the real graphs that tests train on. They are not
// part of siafu: a test that needs one that is not there is skipped and says
// where it looked.
//
// They are looked for in $SIAFU_TESTDATA, else in a folder named data inside
// any folder beside the checkout. A graph is a folder NAME or an archive
// NAME.tar.zst in the raw layout that "siafu import --from raw" reads.
package realdata
