package runfolder

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/internal/durable"
	"siafu/internal/fault"
)

// invitationFile tells other processes how to join the run. It contains a secret.
const invitationFile = "ranks.json"

// Invite writes ranks.json, as JSON of v, for processes of the same user. Close removes it.
func (f *Folder) Invite(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fault.New(fault.Runtime, op, "", "%v", err).Then("report this as a bug")
	}
	return durable.WriteFile(op, filepath.Join(f.dir, invitationFile), text, 0o600)
}

// ReadInvitation reads ranks.json of a run that has not ended, for the operation op: join or leave. A fault
// has kind Usage if the run is not active.
func ReadInvitation(op, run string, v any) error {
	if ReadMarker(run) == nil {
		return fault.New(fault.Usage, op, run, "it is not a run folder").Then("name the --out of a run")
	}
	path := filepath.Join(run, invitationFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Usage, op, run, "no process can %s: the run is not active, or has one rank, or no --survive", op).
			Then("start the run with --survive, and repeat this command when it trains")
	}
	if err != nil {
		return fault.System(op, path, err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fault.New(fault.Data, op, path, "%v", err).Then("use the siafu that runs, and repeat this command")
	}
	return nil
}
