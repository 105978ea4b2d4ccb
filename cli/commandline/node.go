package commandline

import (
	"slices"

	"github.com/alecthomas/kong"

	"siafu/internal/catalog"
)

// Node describes a command and its subcommands, without hidden commands.
type Node struct {
	Name     string // "" at the root
	Path     string // names of the commands from below the root, separated by blanks
	Summary  string // Path and arguments
	Help     string
	Args     []Word
	Flags    []Flag
	Commands []*Node
}

// Word describes an argument.
type Word struct{ Summary, Help string }

// Flag describes a flag of a command.
type Flag struct {
	Name, Summary, Help, Default, Group string
	Values                              []string        // nil: not listed
	Choices                             []catalog.Entry // the values with their help, nil: not described
}

// Describe returns the description of a command as parsed by kong.
func Describe(k *kong.Node) *Node {
	n := &Node{Path: k.Path(), Summary: k.Summary(), Help: k.Help}
	if k.Parent != nil {
		n.Name = k.Name
	}
	for _, p := range k.Positional {
		n.Args = append(n.Args, Word{p.Summary(), p.Help})
	}
	for _, f := range k.Flags {
		if f.Hidden {
			continue
		}
		flag := Flag{Name: f.Name, Summary: f.Summary(), Help: f.Help, Default: f.Default, Values: values(f), Choices: choicesOf(f)}
		if f.Group != nil {
			flag.Group = f.Group.Title
		}
		n.Flags = append(n.Flags, flag)
	}
	for _, child := range k.Children {
		if !child.Hidden {
			n.Commands = append(n.Commands, Describe(child))
		}
	}
	return n
}

// values returns the values of a flag that lists its values.
func values(f *kong.Flag) (list []string) {
	list = catalog.Names(choicesOf(f))
	for _, v := range f.EnumSlice() {
		if v != "" {
			list = append(list, v)
		}
	}
	return list
}

// Find returns the command below n with the given path. It stops at the first name that is not
// a command.
func (n *Node) Find(path ...string) *Node {
	for _, name := range path {
		i := slices.IndexFunc(n.Commands, func(c *Node) bool { return c.Name == name })
		if i < 0 {
			break
		}
		n = n.Commands[i]
	}
	return n
}

// Leaves returns the commands below n that have no subcommands.
func (n *Node) Leaves() (list []*Node) {
	for _, c := range n.Commands {
		if list = append(list, c.Leaves()...); len(c.Commands) == 0 {
			list = append(list, c)
		}
	}
	return list
}

// Flag returns the named flag of a command, or nil.
func (n *Node) Flag(name string) *Flag {
	i := slices.IndexFunc(n.Flags, func(f Flag) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &n.Flags[i]
}
