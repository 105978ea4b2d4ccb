// Package runfolder is what a run leaves behind:
//
//	run.json           the marker: siafu has made the folder
//	lock               who writes it
//	config.toml        the configuration as run
//	metrics.jsonl      one Epoch a line
//	summary.json       the Summary, written last: a folder without one is of a
//	                   run that did not end
//	model.safetensors  the best weights
//	vertices.known      which vertices it was trained on
//	log.txt            what rank 0 said
//	events.out.tfevents.siafu
//	                   the epochs again, for TensorBoard, if it was asked for
//
// and what others write there: checkpoints, predictions, a timeline.
//
// Only rank 0 writes it, in three steps. Claim.Take locks the folder and says
// what is there, without a trace. The caller then checks whatever else could go
// wrong. Begin or Continue write. Close gives the claim back, and if nothing was
// written leaves everything as it was. A folder that siafu has not made cannot
// be claimed, and nothing is removed beside what siafu has written.
package runfolder
