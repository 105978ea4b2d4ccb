package slurm

import (
	"regexp"
	"strings"
	"unicode"

	"siafu/internal/fault"
)

// A script is read twice: its #SBATCH lines by sbatch, all of it by bash. Each
// takes words apart in its own way.

// safe is a word that a shell takes as it is. One with an equals sign would be
// an assignment in front of a command, unless it is a flag.
var safe = regexp.MustCompile(`^(-[A-Za-z0-9_.,:+/@=%-]*|[A-Za-z0-9_.,:+/@%-]+)$`)

// Quote writes words as a shell reads them.
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

// plain is a value that a #SBATCH line may hold without quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.,:+/@=%\[\]-]*$`)

// value writes the value of an option as sbatch reads it: a backslash escapes
// any character, within quotes of both kinds too; a # after none of these
// begins a comment; nothing is expanded. There is no way to write a newline.
func value(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// filename writes a path as a part of Slurm's pattern of a file name. There is
// no way to write a backslash: it makes Slurm expand nothing at all.
func filename(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// check refuses what the scripts cannot hold. The words of command lines are
// not its business: Quote can write them all.
func (j *Job) check() error {
	if strings.ContainsFunc(j.JobName, unicode.IsControl) || field.MatchString(j.JobName) {
		return fault.New(fault.Usage, op, "", "the name of the job, %q, has a control character, or an equals sign after a space", j.JobName).
			Then("set another name with --job-name")
	}
	if strings.ContainsFunc(j.Run, unicode.IsControl) || strings.Contains(j.Run, `\`) {
		return fault.New(fault.Usage, op, "", "the path of the run folder, %q, has a control character or a backslash, which Slurm does not allow in the name of a log", j.Run).
			Then("choose another one with --out")
	}
	return nil
}

// field is what would look like a field of scontrol's in the middle of a name.
var field = regexp.MustCompile(`\s\S*=`)
