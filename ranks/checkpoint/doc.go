// Package checkpoint is what a training run saves and finds again:
//
//	RUN/checkpoints/epoch-000020/
//	    model.safetensors             weights after epoch 20
//	    optimizer.safetensors         the optimiser's state, a tensor a weight and slot
//	    best.safetensors              the best weights so far; absent before an evaluation
//	    state.json                    everything else
//	    MANIFEST.json                 length and SHA-256 of each of them, written last
//
// Nothing in it depends on ranks, servers or the partition, so that a run goes
// on with others.
//
// Save writes into a hidden folder beside the checkpoint's own (package durable),
// syncs every file and the folder, and renames it: a process that is killed, a machine that
// loses power and a disk that is full leave the checkpoints before it as they
// were. Latest and Open verify every byte, and whatever the bytes are the
// answer is the State that was saved or a fault that names the file. Latest
// goes back to the newest checkpoint that is whole and says which ones it
// passed over.
//
// Only rank 0 calls this package, with the Lock of its run folder held, and
// tells the others. Callers
//
//   - check what was read with State.Agree, State.Fits, Metrics.Read and
//     Rewindable before they write anything, and
//   - call Rewind before they train on from an older checkpoint.
//
// Of folders with the names of checkpoints only those are replaced or removed
// that hold nothing but the files above; hidden ones are package scratch's.
//
// Nothing is collective.
package checkpoint
