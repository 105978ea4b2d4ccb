package ranks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/ranks/runfolder"
	"siafu/ranks/world/alive"
	"siafu/ranks/world/parts"
)

// JoinOptions has the flags of "siafu join".
type JoinOptions struct {
	Run string `arg:"" help:"Run folder."`
}

// invitation is the content of ranks.json in the run folder, with which a process joins the run.
type invitation struct {
	Contacts   alive.Contacts
	Directory  string // the working directory of all ranks
	Data       string // the dataset folder
	Shards     string
	Parts      int
	Assignment string // of the shards
	Launch     string // id of the launch
	Config     Config
}

// credentials are what a process that joins must have in common with the ranks: it then computes the
// same bits.
type credentials struct {
	Build       string // hash of the executable
	Fingerprint string // of the dataset
	Host        string
}

// build returns the hash of this process's executable.
var build = sync.OnceValues(func() (string, error) {
	const path = "/proc/self/exe"
	f, err := os.Open(path)
	if err != nil {
		return "", fault.System("join", path, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fault.System("join", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
})

func credentialsOf(data, host string) (c credentials, err error) {
	if c.Build, err = build(); err != nil {
		return c, err
	}
	meta, err := graph.ReadMeta(data)
	if err != nil {
		return c, err
	}
	c.Fingerprint, c.Host = meta.Fingerprint(), host
	return c, nil
}

// vet returns an error if a process with the given credentials must not join.
func (c *viewSequence) vet(request []byte) error {
	var other credentials
	if err := json.Unmarshal(request, &other); err != nil {
		return err
	}
	own, err := credentialsOf(c.data, "")
	switch {
	case err != nil:
		return err
	case other.Build != own.Build:
		return errors.New("its executable differs from that of the run; use the same siafu")
	case other.Fingerprint != own.Fingerprint:
		return fmt.Errorf("the dataset in %s differs from that of the run; copy it from another host", c.data)
	}
	_, err = readZones(c.cfg.Zones, []string{other.Host})
	return err
}

// invite writes ranks.json, on rank 0 of a run that processes can join. Without the file the run
// continues.
func (r *joined) invite() {
	a := r.views.admission
	if r.reporter == nil || a == nil || !r.cfg.Survive {
		return
	}
	dir, err := os.Getwd()
	if err == nil {
		err = r.reporter.folder.Invite(invitation{
			Contacts: a.Contacts(), Directory: dir, Data: r.data, Shards: r.shards, Parts: r.partitions(), Assignment: r.shard.Assignment,
			Launch: os.Getenv(runfolder.LaunchVariable), Config: r.cfg,
		})
	}
	if err != nil {
		r.reporter.warn("other machines cannot join: %v", err)
	}
}

// Join makes this process a spare rank of a run with --survive, on any host with the same program, dataset,
// shards and paths. It waits for the end of an epoch, and returns when the run has ended. If the
// run has ended already, Join prints that.
func Join(_ context.Context, o JoinOptions, out IO) error {
	run, err := filepath.Abs(o.Run)
	if err != nil {
		return fault.System("join", o.Run, err)
	}
	if runfolder.Ended(run) != nil {
		return hasEnded(o.Run, out)
	}
	var inv invitation
	if err := runfolder.ReadInvitation("join", run, &inv); err != nil {
		return err
	}
	if err := os.Chdir(inv.Directory); err != nil {
		return fault.System("join", inv.Directory, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fault.System("join", "", err)
	}
	own, err := credentialsOf(inv.Data, host)
	if err != nil {
		return err
	}
	if err := inv.checkShards(own.Host); err != nil {
		return err
	}
	j, s, err := inv.joiner(run, own, out)
	if err != nil {
		return err
	}
	defer s.close()
	defer s.departure.close()
	fmt.Fprintf(out.Out, "joining the run in %s after the current epoch\n", o.Run)
	joined := false
	err = parts.Join(j, func(rank int) parts.ElasticJob {
		s.rank, joined = rank, true
		fmt.Fprintf(out.Out, "joined as rank %d\n", rank)
		return s
	})
	refused, has := (*alive.Refusal)(nil), runfolder.Ended(run) != nil
	switch {
	case errors.As(err, &refused):
		return fault.New(fault.Config, "join", o.Run, "the run refuses this process: %s", refused.Reason)
	case has && (err == nil || !joined): // it may end before any rank responds
		return hasEnded(o.Run, out)
	case errors.Is(err, parts.ErrEnded):
		return fault.New(fault.Stopped, "join", o.Run, "the ranks of the run have ended").
			Then("start the run again: it resumes from its last checkpoint")
	}
	return err
}

func hasEnded(run string, out IO) error {
	_, err := fmt.Fprintf(out.Out, "the run in %s has ended\n", run)
	return err
}

// joiner returns the parameters of parts.Join for a process with the given credentials, and its job.
func (inv *invitation) joiner(run string, own credentials, out IO) (j parts.Joiner, s *viewSequence, err error) {
	c := inv.Config
	if j.Limits, err = c.Limits(func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) }); err != nil {
		return j, nil, err
	}
	silence, err := c.SilenceLimit()
	if err != nil {
		return j, nil, err
	}
	zone, err := readZones(c.Zones, append(slices.Clone(inv.Contacts.Hosts()), own.Host))
	if err != nil {
		return j, nil, err
	}
	if j.Request, err = json.Marshal(own); err != nil {
		return j, nil, err
	}
	if err := os.Setenv(runfolder.LaunchVariable, inv.Launch); err != nil {
		return j, nil, err
	}
	s = newViewSequence(c, inv.Data, j.Limits, nil, out)
	s.kind = "mpi"
	s.setRunFolder(run)
	s.departure = watchDeparture(&c, own.Host, out)
	s.departure.older = runfolder.LeavingBytes(run)
	j.Contacts, j.Host, j.Elasticity = inv.Contacts, own.Host, s.elasticity(silence, zone)
	return j, s, nil
}

// checkShards fails if this host lacks a shard, or has another partitioning than the run.
func (inv *invitation) checkShards(host string) error {
	if err := opens("join", host, shard.Paths(inv.Shards, inv.Parts)); err != nil {
		return err
	}
	first, err := shard.OpenIn(inv.Shards, inv.Data, inv.Parts, 0)
	if err != nil {
		return err
	}
	defer first.Close()
	if first.Assignment != inv.Assignment {
		return fault.New(fault.Data, "join", inv.Shards, "the shards belong to another partitioning than those of the run").
			Then("copy them from another host")
	}
	return nil
}
