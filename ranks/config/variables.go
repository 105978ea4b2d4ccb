package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"siafu/kernels/model"

	"github.com/alecthomas/kong"
)

// Variables returns the variables in enum tags of Config: the names of recipes and networks. Every
// parser of a Config needs them.
func Variables() kong.Vars {
	var names []string
	for _, r := range recipes {
		names = append(names, r.Name)
	}
	return kong.Vars{"recipes": strings.Join(names, ","), "all_networks": strings.Join(model.Kinds(), ", ")}
}

// networkLists returns lists of networks for help, by name.
func networkLists() map[string]string {
	lists := map[string]string{}
	set := func(name string, names []string) { lists[name+"_networks"] = strings.Join(names, ", ") }
	set("all", model.Kinds())
	set("attention", model.KindsWith(func(k *model.Kind) bool { return k.Attends }))
	set("elu", model.KindsWith(func(k *model.Kind) bool { return k.Activation == "elu" }))
	set("fixed", model.KindsWith((*model.Kind).FixedDesign))
	set("variates", model.KindsWith(func(k *model.Kind) bool { return k.Variates }))
	set("mixing", model.KindsWith((*model.Kind).Mixes))
	set("whole", model.KindsWith(func(k *model.Kind) bool { return k.Whole }))
	for _, o := range model.Options() {
		set(strings.ReplaceAll(string(o), "-", "_"), model.KindsWith(func(k *model.Kind) bool { return k.Takes(o) }))
	}
	return lists
}

// Expand replaces the variables and the lists of networks in a text.
func Expand(tag string) string {
	vars := networkLists()
	maps.Copy(vars, Variables())
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

// ConflictTable returns a line for each conflict, or only for the conflicts of a flag.
func ConflictTable(flag string) string {
	var b strings.Builder
	shows := func(f fact) bool {
		return slices.ContainsFunc(strings.Fields(f.flags), func(s string) bool {
			p, _ := PartOf(s)
			return s == flag || p.Flag == flag && flag != ""
		})
	}
	for _, c := range conflicts {
		switch {
		case flag == "" || shows(c.a):
			fmt.Fprintf(&b, "%s, not with %s: %s.\n", c.a.name, c.b.name, Expand(c.remedy))
		case shows(c.b):
			fmt.Fprintf(&b, "%s, not with %s: %s.\n", c.b.name, c.a.name, Expand(c.remedy))
		}
	}
	return b.String()
}
