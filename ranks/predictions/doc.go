// Package predictions is the folder that a prediction leaves: classes,
// probabilities and embeddings by the user's own vertex ids, as .npy, text and
// csv.
//
// Every rank writes the rows of its own vertices, so that none ever holds all of
// them, into files that rank 0 has created under temporary names. Create is
// collective; when all ranks have called Write, Commit gives the files their
// names, and Abort removes what has none. A marker tells which files of a folder
// are siafu's: no other file is overwritten.
package predictions
