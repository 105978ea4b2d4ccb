// Package predictions writes the folder of a prediction: classes, probabilities and
// embeddings by the user's vertex ids, as .npy, text and csv.
//
// Every rank writes the rows of its own vertices into files that rank 0 has created under
// temporary names, so that no rank stores all rows. Create is collective. After all ranks
// have called Write, Commit renames the files, and Abort removes files that have not been
// renamed. A marker lists the files of siafu in a folder; no other file is overwritten.
package predictions
