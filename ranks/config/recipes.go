package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"siafu/graph"
)

// Recipe has the settings of a published run, and their accuracy.
type Recipe struct {
	Name      string
	Flags     string // of siafu train
	Dataset   string // name of the dataset
	Import    string // flags of import or download
	Vertices  int64  // number of vertices of the dataset; 0: not fixed
	Normalize bool   // feature rows must be divided by their sums
	Published string // published test accuracy in percent, and its source
	Ours      string // measured test accuracy; empty: not measured
	Date      string // of the measurement, or of the entry
}

// Settings that several recipes share:
//
//   - kipf: Kipf & Welling 2017, §5.2
//   - shchur: the same with the width of Shchur et al. 2018
//   - velickovic: Veličković et al. 2018, §3.3
//   - chen: common settings of the authors' program of GCNII (train.py and semi.sh)
//   - klicpera: Klicpera et al. 2019, with the stopping rule of GAT's program
//   - sgc: Wu et al. 2019, with the best of five penalties on the validation vertices of citeseer,
//     which is one of the two best on cora
//   - pitfalls, shchurGAT, shchurSAGE, shchurPool, shchurMLP: the optimised settings of Shchur et al.
//     2018 (config of their program)
//   - ogb: the example programs of the Open Graph Benchmark
//   - saint: common settings of Zeng et al. 2020 (train_config/table2 of their program), except the
//     epochs, which are epochs of samples there
const (
	kipf = "--model gcn --hidden 16 --dropout 0.5 --weight-decay 5e-4 --initializer xavier --epochs 200 " +
		"--eval-every 0 --layers 2 --lr 0.01"
	shchur     = "--model gcn --hidden 64 --dropout 0.5 --weight-decay 5e-4 --initializer xavier --epochs 200 --layers 2 --lr 0.01"
	velickovic = "--model gat --hidden 8 --heads 8 --lr 0.005 --dropout 0.6 --weight-decay 5e-4:on=all --initializer " +
		"xavier --epochs 100000 --patience 100 --monitor both --layers 2"
	chen = "--model gcnii:alpha=0.1 --lr 0.01 --weight-decay 5e-4:on=all,inner=0.01 --epochs 1500 " +
		"--patience 100 --monitor loss --initializer torch"
	klicpera = "--model appnp:alpha=0.1,hops=10 --hidden 64 --lr 0.01 --dropout 0.5 --weight-decay 5e-3 --epochs 10000 --patience " +
		"100 --monitor both --initializer xavier --layers 2"
	sgc       = "--model sgc --dropout 0 --lr 0.2 --weight-decay 5e-5 --epochs 100 --eval-every 0 --initializer torch --layers 2"
	pitfalls  = " --epochs 100000 --patience 50 --monitor penalised --initializer xavier --layers 2"
	shchurGAT = "--model gat --hidden 8 --heads 8 --lr 0.01 --dropout 0.6:attention=0.3 --weight-decay 0.01 " +
		"--weight-decay on=all" + pitfalls
	shchurSAGE = "--model sage --hidden 32 --lr 0.001 --dropout 0.4 --weight-decay 0.1" + pitfalls
	shchurPool = "--model sage-pool:pool-hidden=32 --norm ball --hidden 32 --lr 0.001 --dropout 0.3 --weight-decay 0.005" + pitfalls
	shchurMLP  = "--model mlp --hidden 64 --lr 0.005 --dropout 0.8 --weight-decay 0.01:on=all" + pitfalls
	ogb        = "--layers 3 --hidden 256 --dropout 0.5 --input-dropout 0 --weight-decay 0 --lr 0.01"
	saint      = "--weight-decay 0 --lr 0.01 --epochs 200 --eval-every 5 --layers 2"
)

const (
	coraSize, citeseerSize, pubmedSize = 2708, 3327, 19717
	divided                            = "--normalize-features"
	smallSplit                         = "--split split_20_30.bin"
)

// Recipes returns all recipes, by dataset.
func Recipes() []Recipe { return slices.Clone(recipes) }

func recipeNamed(name string) *Recipe {
	for i := range recipes {
		if recipes[i].Name == name {
			return &recipes[i]
		}
	}
	return nil
}

// RecipeFlags returns the values of a recipe by flag, nil for an unknown name.
func RecipeFlags(name string) map[string]string {
	r := recipeNamed(name)
	if r == nil {
		return nil
	}
	values := map[string]string{}
	for _, o := range r.options() {
		values[o.option] = o.value
	}
	return values
}

// optionValue is an option with its value.
type optionValue struct{ option, value string }

// options returns the options that the recipe sets, in the order of its flags.
func (r *Recipe) options() (list []optionValue) {
	words, err := Separate(strings.Fields(r.Flags))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(words); i++ {
		option, value, joined := strings.Cut(strings.TrimPrefix(words[i], "--"), "=")
		if !joined {
			i++
			value = words[i]
		}
		list = append(list, optionValue{option, value})
	}
	return list
}

// RecipeTable returns the text of "siafu help recipes".
func RecipeTable() string {
	var b strings.Builder
	b.WriteString("siafu train DATA --recipe NAME trains with published settings. Flags that are given win.\nTest accuracy in percent; " +
		"\"unmeasured\": not yet reproduced here.\n\n")
	for _, r := range recipes {
		fmt.Fprintf(&b, "%s\n    %s\n    data: %s\n    %s\n", r.Name, r.says(), strings.TrimSpace(r.Dataset+" "+r.Import), r.Flags)
	}
	return b.String()
}

// says returns the published and the measured accuracy of the recipe.
func (r *Recipe) says() string {
	if r.Ours == "" {
		return fmt.Sprintf("published %s; unmeasured here (%s)", r.Published, r.Date)
	}
	return fmt.Sprintf("published %s; ours %s (%s)", r.Published, r.Ours, r.Date)
}

// RecipeSays returns the published and measured accuracy of the selected recipe.
func (c *Config) RecipeSays() string { return recipeNamed(c.Recipe).says() }

// Changed lists the flags of the recipe with other values in the configuration, such as
// "--lr=0.01 (0.005)", in the recipe's order. It is nil without a recipe.
func (c *Config) Changed() []string {
	r := recipeNamed(c.Recipe)
	if r == nil {
		return nil
	}
	var list []string
	for _, o := range r.options() {
		if got := c.value(o.option); got != o.value && !sameNumber(got, o.value) {
			list = append(list, fmt.Sprintf("%s (%s)", Spell(o.option, got), o.value))
		}
	}
	return list
}

func (c *Config) value(flag string) string {
	index, known := optionIndices()[flag]
	if !known {
		panic("config: no flag has this name")
	}
	return fmt.Sprint(reflect.ValueOf(c).Elem().FieldByIndex(index))
}

// optionIndices returns the index of each option's field, by the flag's name.
var optionIndices = sync.OnceValue(func() map[string][]int {
	indices := map[string][]int{}
	for _, f := range optionFields() {
		indices[f.Tag.Get("toml")] = f.Index
	}
	return indices
})

// sameNumber reports whether two texts are the same number, such as 5e-4 and 0.0005.
func sameNumber(a, b string) bool {
	var x, y float64
	n, _ := fmt.Sscan(a, &x)
	m, _ := fmt.Sscan(b, &y)
	return n == 1 && m == 1 && x == y
}

// Doubts describes how a dataset differs from that of the recipe. It is empty if it does
// not differ, or without a recipe.
func (c *Config) Doubts(m *graph.Meta) string {
	r := recipeNamed(c.Recipe)
	switch {
	case r == nil:
	case r.Vertices > 0 && r.Vertices != m.Vertices:
		return fmt.Sprintf("recipe %s is for %s with %d vertices, but this dataset has %d", r.Name, r.Dataset, r.Vertices, m.Vertices)
	case r.Normalize && !m.Normalized:
		return fmt.Sprintf("recipe %s needs feature rows divided by their sums: import %s with %s", r.Name, r.Dataset, divided)
	}
	return ""
}
