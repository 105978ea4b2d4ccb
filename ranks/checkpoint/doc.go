// Package checkpoint saves and restores the state of a training run:
//
//	RUN/checkpoints/epoch-000020/
//	    model.safetensors             weights after epoch 20
//	    optimizer.safetensors         the optimiser's state, one tensor per weight and slot
//	    best.safetensors              the best weights so far; absent before an evaluation
//	    state.json                    everything else
//	    MANIFEST.json                 length and SHA-256 of each file, written last
//
// The files do not depend on the ranks, the servers or the partition. A run can resume with
// others.
//
// Save writes into a hidden folder beside the checkpoint (package durable), syncs every
// file and the folder, and renames it. A killed process, a power loss or a full disk leaves
// earlier checkpoints unchanged. Latest and Open verify every byte. They return the State
// that was saved, or a fault that names the damaged file. Latest returns the newest valid
// checkpoint and lists the ones that it skipped.
//
// Only rank 0 calls this package, while it holds the Lock of its run folder, and sends the
// state to other ranks. Callers
//
//   - check the state with State.Agree, State.Fits, Metrics.Read and Rewindable before they
//     write, and
//   - call Rewind before they train on from an older checkpoint.
//
// A folder with the name of a checkpoint is replaced or removed only if it contains nothing
// but the files above. Package scratch owns the hidden folders.
//
// Nothing is collective.
package checkpoint
