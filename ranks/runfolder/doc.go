// Package runfolder reads and writes the folder of a run:
//
//	run.json           the marker of a folder that siafu has created
//	lock               the process that writes the folder
//	config.toml        the configuration of the run
//	metrics.jsonl      one Epoch per line
//	summary.json       the Summary, written last: without it the run has not ended
//	model.safetensors  the best weights
//	vertices.known     the vertices of the training
//	log.txt            the log of rank 0
//	events.out.tfevents.siafu
//	                   the epochs for TensorBoard, if requested
//
// Other packages write checkpoints, predictions and a timeline into the folder.
//
// Only rank 0 writes, in three steps. Claim.Take locks the folder and reports its contents
// without changing it. The caller then makes all other checks. Begin or Continue write.
// Close releases the claim, and leaves the folder unchanged if nothing was written. A
// folder that siafu has not made cannot be claimed. Only files that siafu has written are
// removed.
package runfolder
