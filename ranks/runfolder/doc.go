// Package runfolder is what a run leaves behind:
//
//	config.toml        the configuration as run
//	metrics.jsonl      one Epoch a line
//	summary.json       the Summary, written last: a folder without one is of a
//	                   run that did not end
//	model.safetensors  the best weights
//	log.txt            what rank 0 said
//
// Only rank 0 writes it.
package runfolder
