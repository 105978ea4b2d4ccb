package function

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"siafu/kernels/model"
	"siafu/lambda"
)

// network returns an encoded specification.
func network(t testing.TB, change func(*lambda.Network)) json.RawMessage {
	t.Helper()
	n := lambda.Network{Spec: model.Spec{Kind: "gcn", Dims: []int{4, 3, 2}, Orders: make([]model.Order, 2)}, Kernel: "go"}
	change(&n)
	//lint:ignore SA1026 Custom is nil in what is sent
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An invalid network or endpoint gives an error with the reason, and the function continues.
func TestRefused(t *testing.T) {
	f := New()
	defer f.Close()
	for name, c := range map[string]struct {
		network json.RawMessage
		want    string
	}{
		"nothing":        {nil, "specification"},
		"another thing":  {json.RawMessage(`[1]`), "specification"},
		"no kind":        {network(t, func(n *lambda.Network) { n.Spec.Kind = "rnn" }), "rnn"},
		"no layer":       {network(t, func(n *lambda.Network) { n.Spec.Dims = []int{4} }), "1 dimensions"},
		"no order":       {network(t, func(n *lambda.Network) { n.Spec.Orders = nil }), "0 orders"},
		"a wide layer":   {network(t, func(n *lambda.Network) { n.Spec.Dims[1] = 1 << 40 }), "layer 1"},
		"a narrow layer": {network(t, func(n *lambda.Network) { n.Spec.Dims[2] = -1 }), "layer 2"},
		"heads":          {network(t, func(n *lambda.Network) { n.Spec.Kind, n.Spec.Heads = "gat", 2 }), "2 heads"},
		"fewer heads":    {network(t, func(n *lambda.Network) { n.Spec.Kind, n.Spec.Heads = "gat", -1 }), "negative"},
		"another code":   {json.RawMessage(`{"Spec":{"Custom":{"Name":"x"}}}`), ""},
		"no endpoint":    {network(t, func(*lambda.Network) {}), "invalid address"},
	} {
		if _, err := f.Handle(context.Background(), lambda.Request{Network: c.network}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A network is made once per specification. Kernels that this processor lacks are replaced.
func TestKnow(t *testing.T) {
	f := New()
	defer f.Close()
	spec := network(t, func(*lambda.Network) {})
	if err := f.setNetwork(spec); err != nil || f.ops.Kernel() != "go" {
		t.Fatal(f.ops.Kernel(), err)
	}
	first := f.network
	if err := f.setNetwork(spec); err != nil || f.network != first {
		t.Errorf("the same network is made again: %v", err)
	}
	if err := f.setNetwork(network(t, func(n *lambda.Network) { n.Kernel = "of another processor" })); err != nil ||
		f.network == first || f.ops.Kernel() == "" {
		t.Errorf("another specification: %v", err)
	}
}

// The function answers any request.
func FuzzHandle(f *testing.F) {
	f.Add([]byte(network(f, func(*lambda.Network) {})))
	f.Add([]byte(network(f, func(n *lambda.Network) { n.Spec.Kind, n.Sparse = "gat", true })))
	known := New()
	f.Fuzz(func(t *testing.T, network []byte) {
		if _, err := known.Handle(context.Background(), lambda.Request{Network: network}); err == nil {
			t.Error("no error without an endpoint")
		}
	})
}
