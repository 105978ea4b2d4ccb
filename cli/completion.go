package cli

import (
	"fmt"
	"strings"

	"siafu/cli/commandline"
	"siafu/internal/fault"
)

// completionCmd writes a completion script for a shell.
type completionCmd struct {
	Shell string `arg:"" help:"Shell: bash, zsh or fish."`
}

func (c *completionCmd) Run(io commandline.Console) error {
	write, ok := map[string]func([]words) string{"bash": bash, "zsh": zsh, "fish": fish}[c.Shell]
	if !ok {
		return fault.New(fault.Usage, "completion", "", "unknown shell %q", c.Shell).Then("use bash, zsh or fish")
	}
	_, err := fmt.Fprint(io.Out, write(wordsOf(describe(), "")))
	return err
}

// words contains the possible words after a command path such as " bench epoch". The path of
// siafu is empty.
type words struct {
	path string
	list []word
}

// word is a command, or a flag with two dashes and its possible values.
type word struct {
	text, help string
	values     []string
}

// valued returns the flags with lists of values of all commands. The path of an entry is the
// command's path and the flag.
func valued(all []words) (list []words) {
	for _, w := range all {
		for _, x := range w.list {
			if x.values != nil {
				list = append(list, words{w.path + " " + x.text, []word{x}})
			}
		}
	}
	return list
}

// wordsOf returns the words of a command and all its subcommands.
func wordsOf(n *commandline.Node, path string) []words {
	here := words{path: path}
	var below []words
	for _, child := range n.Commands {
		here.list = append(here.list, word{child.Name, child.Help, nil})
		below = append(below, wordsOf(child, path+" "+child.Name)...)
	}
	for _, f := range n.Flags {
		help, _, _ := strings.Cut(f.Help, "\n\n")
		here.list = append(here.list, word{"--" + f.Name, help, f.Values})
	}
	if path == "" {
		here.list = append(here.list, word{"help", "Show help for a command or a flag.", nil})
	}
	return append([]words{here}, below...)
}

// cases returns the branches of a shell's case statement, one per command path.
func cases(all []words, branch func(w words) string) string {
	var b strings.Builder
	for _, w := range all {
		fmt.Fprintf(&b, "    %q) %s ;;\n", w.path, branch(w))
	}
	return b.String()
}

// along returns shell code that sets the variable at to the command path of the words before
// the cursor.
func along(all []words) string {
	var paths []string
	for _, w := range all[1:] {
		paths = append(paths, fmt.Sprintf("%q", w.path))
	}
	return fmt.Sprintf("    case \"$at $w\" in %s) at=\"$at $w\" ;; esac\n", strings.Join(paths, "|"))
}

func bash(all []words) string {
	return "# siafu completion bash\n_siafu() {\n  local at=\"\" w list=\"\"\n  for w in " +
		"\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" + along(all) +
		"  done\n  case \"$at\" in\n" + cases(all, func(w words) string {
		var texts []string
		for _, x := range w.list {
			texts = append(texts, x.text)
		}
		return fmt.Sprintf("list=%q", strings.Join(texts, " "))
	}) + "  esac\n  case \"$at ${COMP_WORDS[COMP_CWORD-1]}\" in\n" + cases(valued(all), func(w words) string {
		return fmt.Sprintf("list=%q", strings.Join(w.list[0].values, " "))
	}) + "  esac\n  COMPREPLY=($(compgen -W \"$list\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _siafu siafu\n"
}

func zsh(all []words) string {
	return "#compdef siafu\n_siafu() {\n  local at=\"\" w\n  local -a list\n  for w in ${words[2,CURRENT-1]}; do\n" + along(all) +
		"  done\n  case \"$at\" in\n" + cases(all, func(w words) string {
		var texts []string
		for _, x := range w.list {
			texts = append(texts, quoted(strings.ReplaceAll(x.text, ":", `\:`)+":"+x.help))
		}
		return "list=(" + strings.Join(texts, " ") + ")"
	}) + "  esac\n  case \"$at ${words[CURRENT-1]}\" in\n" + cases(valued(all), func(w words) string {
		return "list=(" + strings.Join(w.list[0].values, " ") + ")"
	}) + "  esac\n  _describe siafu list || _files\n}\ncompdef _siafu siafu\n"
}

func fish(all []words) string {
	var b strings.Builder
	b.WriteString("# siafu completion fish\nfunction __siafu_at\n  set -l at ''\n  for w in (commandline -opc)[2..-1]\n    " +
		"switch \"$at $w\"\n      case")
	for _, w := range all[1:] {
		b.WriteString(" " + quoted(w.path))
	}
	b.WriteString("\n        set at \"$at $w\"\n    end\n  end\n  test \"$at\" = \"$argv[1]\"\nend\n")
	for _, w := range all {
		for _, x := range w.list {
			kind, text := "-a", x.text
			if flag, ok := strings.CutPrefix(text, "--"); ok {
				kind, text = "-l", flag
			}
			if x.values != nil {
				text += " -x -a " + quoted(strings.Join(x.values, " "))
			}
			fmt.Fprintf(&b, "complete -c siafu -n %s %s %s -d %s\n", quoted("__siafu_at "+quoted(w.path)), kind, text, quoted(x.help))
		}
	}
	return b.String()
}

// quoted quotes a text for bash, zsh and fish: in single quotes, with single quotes inside
// double quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }
