// Package sat reproduces the tables and figures of SAT (Bai et al., arXiv 2308.13466, sections V
// and VI): training with stale ghost rows, and with predictions in their place (halo/predict).
//
// A method is a published system and a kind of prediction: flags of train. A part is a table or
// figure, with the paper's numbers if its text has them. Trainings are stored in a folder and
// shared by parts. A training that train refuses is a dash, with the refusal below the table.
//
// Accuracies, errors and memory come from runs in one process. Times of epochs come from runs
// over links of the chosen rates between virtual hosts on this machine.
package sat
