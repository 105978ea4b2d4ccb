package ranks

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siafu/kernels/model"
)

// promise is what a value of a flag leaves equal.
type promise int

const (
	isTrained  promise = iota // nothing: the value is part of what is trained
	sameLoss                  // the losses of each epoch, except for the order of sums
	sameWeight                // the bytes of the model, for equal partitions
)

// feature is a value of a flag, followed by the flags that it needs.
type feature struct {
	flag     string
	settings []string // flag=value
	promise  promise
}

func (f feature) String() string { return "--" + strings.Join(f.settings, " --") }

// decision is what the table says about a flag: its values in pairs, or why it has none.
type decision struct {
	promise promise
	values  []string // further flags may follow a value; nil: all of the tag enum but the default
	reason  string
}

func trains(values ...string) decision       { return decision{promise: isTrained, values: values} }
func leavesLosses(values ...string) decision { return decision{promise: sameLoss, values: values} }
func leavesBytes(values ...string) decision  { return decision{promise: sameWeight, values: values} }
func none(reason string) decision            { return decision{reason: reason} }

// with is for a flag that other values set.
func with(p promise) decision { return decision{promise: p, reason: "is set by values of other flags"} }

// Reasons of flags without values.
const (
	inexact     = "promises no equal losses"
	ofInexact   = "acts only on training that promises no equal losses"
	ofLinks     = "acts only on links, which have their own tests"
	ofFunctions = "starts processes, which have their own tests"
	ofViews     = "acts on lost ranks, which need MPI"
	ofPipelines = "pipelines train cluster batches, which promise no equal losses"
	ofOutput    = "changes no number"
	chooses     = "selects an epoch, and does not change it"
	ofMachine   = "depends on the machine"
	byPath      = "is a path"
)

// flagDecisions has every flag of train. The pseudo-flag data selects a dataset, with its task.
var flagDecisions = map[string]decision{
	"data": trains("directed", "sparse", "weighted", "multilabel", "regression", "links", "relational"),

	"ranks": leavesLosses("2", "4", "3 servers=1", "5 servers=2", "4 servers=3"), "servers": with(sameLoss), "parts": leavesBytes("4"),
	"threads": leavesBytes("1", "3"), "partitioner": leavesLosses("contiguous", "fennel"),
	"vertex-order": leavesLosses("rabbit"), "parts-dir": none(byPath),
	"mode": leavesBytes("nopipe"), "staleness": none(inexact), "delay-bound": none(ofInexact), "linger": none(ofInexact),
	"switch-to-sync": none(ofInexact),
	"intervals":      leavesLosses("1", "7"), "delay": none("slows ranks down"), "survive": none(ofViews),
	"spares": none(ofViews), "least-ranks": none(ofViews),
	"notice": none(ofViews), "zones": none(ofViews), "lost-after": none(ofViews), "listen": none(ofViews), "stall-warn": none(ofOutput),
	"stall-abort": none(ofOutput),

	"refresh": none(inexact), "ghost-gradients": none(inexact), "codec": leavesBytes("s2", "zstd", "auto:lossless"),
	"pre-aggregate":    leavesLosses("on"),
	"recompute-ghosts": leavesLosses("layers:1", "layers:2", "layers:1.5", "all"), "predict": none(ofInexact),
	"predict-rows":    none(ofInexact),
	"predict-history": none(ofInexact), "predict-every": none(ofInexact), "predict-window": none(ofInexact), "predict-lr": none(ofInexact),
	"predict-input": none(ofInexact), "predict-hold": none(ofInexact), "refresh-rows": trains("whole"),
	"measure-staleness": none(ofInexact),

	"tensor": none(ofFunctions), "graph": none(ofMachine), "cuda-blas": none(ofMachine),
	"kernel": leavesBytes("go"), "precision": trains("mixed"),
	"gather": trains("bf16"), "products": trains("bf16"), "features": trains("bf16 cache-input=on input-dropout=0"),
	"order":       leavesLosses("gather-first", "apply-first"),
	"cache-input": leavesLosses("on input-dropout=0"), "recompute": leavesBytes("true"), "memory": leavesBytes("1MB force-memory=true"),
	"edges":   leavesBytes("coded"),
	"scratch": leavesBytes("DIR", "DIR memory=1MB force-memory=true"),
	"slices":  leavesBytes("2 scratch=DIR memory=1MB force-memory=true ranks=1"),

	"bridges": none(ofFunctions), "bridge-address": none(ofFunctions), "lambda": none(ofFunctions), "lambda-function": none(ofFunctions),
	"lambda-memory": none(ofFunctions), "lambda-arch": none(ofFunctions), "lambda-at-once": none(ofFunctions),
	"lambda-limits": none(ofFunctions),
	"lambda-faults": none(ofFunctions), "lambda-codec": none(ofFunctions), "lambda-without": none(ofFunctions),

	"model": trains(model.Kinds()[1:]...), "layer-kinds": trains("gcn,sage"), "layers": trains("1", "2", "4"), "hidden": trains("24"),
	"heads": trains("2 model=gat"), "output-heads": trains("2 model=gatv2"), "activation": trains(), "norm": trains(),
	"residual": trains(), "jumping": trains(),
	"dropout": trains("0"), "input-dropout": trains("0", "0.5"), "attention-dropout": trains("0.6 model=gat"), "input-scale": trains("2"),
	"bases": trains("2 model=rgcn data=relational"), "blocks": trains("4 model=rgcn"), "project": trains("on"),
	"softmax": trains("relation model=rgat data=relational"), "edge-residual": trains("0.3 model=hgn data=relational"),
	"pool-hidden": trains("5 model=sage-pool"), "alpha": trains("0.3 model=gcnii"), "theta": trains("1 model=gcnii"),
	"hops":  trains("3 model=appnp"),
	"steps": trains("2 model=sign"), "embedding": trains("8 data=links"),
	"link-score": trains("mlp data=links"), "link-layers": none(ofLinks), "link-negatives": none(ofLinks),
	"link-hidden": none(ofLinks), "link-dropout": none(ofLinks), "init": none(byPath), "initializer": trains("xavier", "torch"),

	"repeat": none(byPath), "recipe": none("sets other flags"), "defaults": none("sets other flags"),
	"task": none("is that of the dataset"), "batch": leavesLosses("approximate:1"),
	"pipeline": none(ofPipelines), "microbatches": none(ofPipelines), "schedule": none(ofPipelines), "balance": none(ofPipelines),
	"redundancy":     none(ofPipelines),
	"history-format": none(ofInexact), "epochs": none("is short"), "lr": trains("0.002"), "optimizer": trains("sgd", "adamw"),
	"momentum":     trains("0 optimizer=sgd"),
	"weight-decay": trains("0.1"), "inner-decay": trains("0.1 model=gcnii"), "weight-decay-on": trains("all"), "seed": trains("7"),
	"label-smoothing": trains("0.1"),
	"class-weights":   trains("balanced"), "eval-every": trains("2", "0"), "patience": none(chooses),
	"monitor": none(chooses), "target-acc": none(chooses),
	"local-epochs": none(inexact), "server-correction": none(ofInexact), "correction-batch": none(ofInexact),

	"checkpoint-every": leavesBytes("2e"), "keep": none(ofOutput),
	"resume": none("happens with --checkpoint-every"), "grace": none(ofOutput),
	"out": none(byPath), "force": none(ofOutput), "force-memory": with(sameWeight), "quiet": none(ofOutput), "log-format": none(ofOutput),
	"trace": none(ofOutput), "tensorboard": none(ofOutput), "instance": none(ofOutput), "budget": none(ofOutput),
}

// features returns the values of the table in the order of the flags.
func features() (list []feature) {
	add := func(flag string, usual string, enum []string) {
		d := flagDecisions[flag]
		if d.values == nil && d.reason == "" {
			d.values = slices.DeleteFunc(enum, func(v string) bool { return v == usual || v == "" })
		}
		for _, v := range d.values {
			list = append(list, feature{flag, strings.Fields(flag + "=" + v), d.promise})
		}
	}
	add("data", "", nil)
	for f := range new(Config).Options() {
		add(f.Tag.Get("toml"), f.Tag.Get("default"), strings.Split(f.Tag.Get("enum"), ","))
	}
	return list
}

// Every flag of train has a decision: values whose pairs with other flags are tested, or the reason why
// there are none.
func TestEveryFlagIsDecided(t *testing.T) {
	t.Parallel()
	rest := map[string]bool{"data": false}
	for flag := range flagDecisions {
		rest[flag] = flag != "data"
	}
	for f := range new(Config).Options() {
		flag := f.Tag.Get("toml")
		if flag == "-" {
			continue
		}
		if _, known := flagDecisions[flag]; !known {
			t.Errorf("--%s is not in the table of features: add values for pairs, or a reason", flag)
		}
		rest[flag] = false
	}
	for flag, unknown := range rest {
		if unknown {
			t.Errorf("the table of features has --%s, which is no flag", flag)
		}
	}
}

// set sets a flag of a configuration.
func set(t testing.TB, c *Config, flag, value string) {
	t.Helper()
	for f, to := range c.Options() {
		if f.Tag.Get("toml") != flag {
			continue
		}
		if to.Kind() == reflect.String {
			to.SetString(value)
		} else if _, err := fmt.Sscan(value, to.Addr().Interface()); err != nil {
			t.Fatalf("--%s=%s: %v", flag, value, err)
		}
		return
	}
	t.Fatalf("no flag --%s", flag)
}
