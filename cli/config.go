package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"

	"siafu/internal/catalog"
	"siafu/internal/fault"
	"siafu/internal/screen"
	"siafu/ranks/config"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/slurm/launch"
)

// envPrefix is the prefix of environment variables for flags of train: SIAFU_WEIGHT_DECAY is
// --weight-decay.
const envPrefix = "SIAFU_"

// notFlags are variables with envPrefix that are not flags of train; the tests and the launcher
// use them.
var notFlags = []string{"testdata", "big", "fault-seed", "cpu", "mpirun", "cases-seed",
	flagName(launch.StatusVariable), flagName(screen.Variable), flagName(inject.Variable), flagName(runfolder.LaunchVariable)}

// oldNames maps former names of keys and variables to their present names.
var oldNames = map[string]string{"patience-on": "monitor", "ghost-features": "recompute-ghosts"}

// settings are values of train's flags from sources other than the command line. In descending
// priority: the TOML file, the environment, a recipe.
type settings struct {
	path   string // of the file
	text   string // of the file
	file   map[string]string
	env    map[string]string
	recipe map[string]string // values of the recipe that the command line, the file or the environment names
}

// loadConfig reads the TOML file among the arguments of train, if any. It checks keys and
// types, so that a fault contains the line.
func loadConfig(args []string) (*settings, error) {
	s := &settings{env: map[string]string{}}
	if len(args) > 0 && (args[0] == "train" || args[0] == "plan") {
		defer func() { s.recipe = config.RecipeFlags(s.named("recipe", args[1:])) }()
	}
	if len(args) == 0 || args[0] != "train" {
		return s, nil
	}
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, envPrefix) {
			key := flagName(name)
			if err := add(s.env, cmp.Or(oldNames[key], key), value); err != nil {
				return s, err
			}
		}
	}
	for _, a := range args[1:] {
		if strings.HasSuffix(a, ".toml") && !strings.HasPrefix(a, "-") {
			return s, s.read(a)
		}
	}
	return s, nil
}

// named returns the value of a flag on the command line, else in the file, else in the
// environment.
func (s *settings) named(flag string, args []string) (value string) {
	value, _ = s.value(flag)
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			value = v
		} else if a == "--"+flag && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}

func flagName(env string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(env, envPrefix), "_", "-"))
}

func (s *settings) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.System("config", path, err)
	}
	s.path, s.text = path, string(text)
	var typed config.Config
	meta, err := toml.Decode(string(text), &typed)
	if err != nil {
		detail := err.Error()
		if p := (toml.ParseError{}); errors.As(err, &p) {
			detail = fmt.Sprintf("line %d: %s", p.Position.Line, p.Message)
		}
		return fault.New(fault.Config, "config", path, "%s", detail).Then(`"siafu help train" lists keys and values: they are the flags`)
	}
	for _, key := range meta.Undecoded() {
		if oldNames[key.String()] != "" {
			continue
		}
		return fault.New(fault.Config, "config", path, "line %d: unknown key %q", lineOf(string(text), key[0]), key).
			Then("did you mean %q?", catalog.Nearest(key.String(), configKeys()))
	}
	values := map[string]any{}
	_, err = toml.Decode(string(text), &values)
	s.file = map[string]string{}
	for key, v := range values {
		if now := cmp.Or(oldNames[key], key); now == key || values[now] == nil {
			err = cmp.Or(err, add(s.file, now, fmt.Sprint(v)))
		}
	}
	return err
}

// add adds the options that a flag with this value sets. A part that has a key of its own has its
// value from there.
func add(options map[string]string, flag, value string) error {
	values, err := config.Values(flag, value)
	for option, v := range values {
		if _, known := options[option]; !known || option == flag {
			options[option] = v
		}
	}
	return err
}

// lineOf returns the line that sets key, or 0 if there is none.
func lineOf(text, key string) int {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimLeft(line, " \t[\"")
		if rest, ok := strings.CutPrefix(line, key); ok && strings.TrimLeft(rest, " \t=]\".") != rest {
			return i + 1
		}
	}
	return 0
}

func configKeys() []string {
	var keys []string
	for f := range new(config.Config).Options() {
		keys = append(keys, f.Tag.Get("toml"))
	}
	return keys
}

// value returns the value of a flag in the source with the highest priority that sets the flag.
func (s *settings) value(flag string) (string, bool) {
	for _, source := range []map[string]string{s.file, s.env, s.recipe} {
		if v, ok := source[flag]; ok {
			return v, true
		}
	}
	return "", false
}

// resolve is a kong.ResolverFunc.
func (s *settings) resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if v, ok := s.value(flag.Name); ok {
		return v, nil
	}
	return nil, nil
}

func variableOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// warn reports variables with envPrefix that are not flags.
func (s *settings) warn(w io.Writer) {
	keys := configKeys()
	for name := range s.env {
		if !slices.Contains(keys, name) && !slices.Contains(notFlags, name) {
			fmt.Fprintf(w, "siafu: warning: the environment variable %s matches no flag of train\n", variableOf(name))
		}
	}
}

// flagInText matches a flag in a message, and the part that follows it.
var flagInText = regexp.MustCompile(`--([a-z][a-z0-9-]*)(?: ([a-z-]+)=)?`)

// withSource adds the file and the line, or the environment variable, to a fault about a flag that
// the command line does not set.
func (s *settings) withSource(args []string, err error) error {
	f := (*fault.Error)(nil)
	if !errors.As(err, &f) || f.Kind != fault.Usage && f.Kind != fault.Config {
		return err
	}
	if separated, err := config.Separate(args); err == nil {
		args = separated
	}
	for _, match := range flagInText.FindAllStringSubmatch(f.Detail, -1) {
		option := config.OptionOf(match[1], match[2])
		is := func(arg string) bool { return arg == "--"+option || strings.HasPrefix(arg, "--"+option+"=") }
		if slices.ContainsFunc(args, is) {
			continue
		}
		if _, ok := s.file[option]; ok {
			line := cmp.Or(lineOf(s.text, option), lineOf(s.text, match[1]))
			return fault.New(fault.Config, "config", s.path, "line %d: %s", line, f.Detail).Then("%s", f.Remedy)
		}
		if _, ok := s.env[option]; ok {
			name := variableOf(option)
			if os.Getenv(name) == "" { // a part of another variable
				name = variableOf(match[1])
			}
			return fault.New(f.Kind, f.Op, f.Path, "environment variable %s: %s", name, f.Detail).Then("%s", f.Remedy)
		}
	}
	return err
}
