package config

import (
	"fmt"
	"os"
	"strings"

	"siafu/kernels/model"

	"github.com/alecthomas/kong"
)

// Variables returns the variables in the tags of Config: lists of recipes and of networks. Every
// parser of a Config needs them.
func Variables() kong.Vars {
	var names []string
	for _, r := range recipes {
		names = append(names, r.Name)
	}
	vars := kong.Vars{"recipes": strings.Join(names, ",")}
	set := func(name string, names []string) { vars[name+"_networks"] = strings.Join(names, ", ") }
	set("all", model.Kinds())
	set("attention", model.KindsWith(func(k *model.Kind) bool { return k.Attends }))
	set("elu", model.KindsWith(func(k *model.Kind) bool { return k.Activation == "elu" }))
	set("fixed", model.KindsWith((*model.Kind).FixedDesign))
	for _, o := range model.Options() {
		set(strings.ReplaceAll(string(o), "-", "_"), taking(o))
	}
	return vars
}

// taking returns the names of the networks that take an option.
func taking(o model.Option) []string {
	return model.KindsWith(func(k *model.Kind) bool { return k.Takes(o) })
}

// Expand replaces the variables in a tag.
func Expand(tag string) string {
	vars := Variables()
	return os.Expand(tag, func(name string) string { return vars[name] })
}

// NetworkTable returns a line for each network, with its source.
func NetworkTable() string {
	var b strings.Builder
	for _, name := range model.Kinds() {
		k := model.KindOf(name)
		line := fmt.Sprintf("%-10s %s", name, k.Help)
		if k.Paper != "" {
			line += " (" + k.Paper + ")"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
