package slurm

import (
	"regexp"
	"strings"
	"unicode"

	"siafu/internal/fault"
)

// sbatch reads the #SBATCH lines of a script, and bash reads the whole script. They have different
// rules for words.

// safe matches a word that needs no quotes in a shell. A word with an equals sign could be an
// assignment in front of a command, unless it is a flag.
var safe = regexp.MustCompile(`^(-[A-Za-z0-9_.,:+/@=%-]*|[A-Za-z0-9_.,:+/@%-]+)$`)

// Quote returns words quoted for a shell.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if !safe.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}

// plain matches a value that needs no quotes in an #SBATCH line.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.,:+/@=%\[\]-]*$`)

// value returns the value of an option quoted for sbatch. sbatch treats a backslash as an escape of
// any character, also within either kind of quotes. An unquoted # begins a comment. sbatch expands
// nothing, and a newline cannot be written.
func value(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// filename returns a path as part of a file name pattern of Slurm. A backslash cannot be written:
// it disables all expansion.
func filename(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// check returns a fault if a #SBATCH line cannot contain the name of the job or the path of its run
// folder. Command lines need no check, because Quote can quote any word.
func (j *Job) check() error {
	if strings.ContainsFunc(j.JobName, unicode.IsControl) || field.MatchString(j.JobName) {
		return fault.New(fault.Usage, op, "",
			"the name of the job, %q, has a control character, or an equals sign after a space", j.JobName).
			Then("set another name with --job-name")
	}
	if s := j.system(); s.jobName != nil && !s.jobName.MatchString(j.JobName) {
		return fault.New(fault.Usage, op, "", "%s does not allow the job name %q", s.title, j.JobName).
			Then("set a name of letters, digits and . _ + - with --job-name")
	}
	if strings.ContainsFunc(j.Run, unicode.IsControl) || j.system() == &slurm && strings.Contains(j.Run, `\`) {
		return fault.New(fault.Usage, op, "", "the path of the run folder, %q, has a control character, or a backslash, which Slurm "+
			"does not allow in the name of a log", j.Run).
			Then("choose another one with --out")
	}
	if j.Survive && j.Launcher == "srun" {
		return fault.New(fault.Usage, op, "", "--survive with --launcher srun, which ends all ranks when one ends").
			Then("leave --launcher out: mpirun starts the ranks in the job")
	}
	return nil
}

// field matches a part of a name that parseQueue would take for a field.
var field = regexp.MustCompile(`\s\S*=`)
