package protocol

import (
	"testing"

	"siafu/internal/wire"
)

// BenchmarkEpoch measures an epoch of 16 intervals on one server, for a network with 602 features,
// 128 hidden units and 41 classes, including decoding and encoding. It counts the bytes of gradients
// and weights in messages.
func BenchmarkEpoch(b *testing.B) {
	layers := []Range{{Lo: 0, Hi: 602 * 128}, {Lo: 602 * 128, Hi: 602*128 + 128*41}}
	all := layers[1].Hi
	c := Setting{Intervals: []int{8, 8}, Servers: 1}
	s := New(c, 0, layers, values(all), none{})
	grad := values(all)
	for i := range grad {
		grad[i] = float32(i%7) - 3
	}
	var request, reply []byte
	room := values(all)
	step := func(m Message) {
		request = Encode(request[:0], m)
		m, err := Decode(request, m.From, m.To, room)
		if err != nil {
			b.Fatal(err)
		}
		out, err := s.Step(m)
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range out {
			reply = Encode(reply[:0], m)
		}
	}
	b.SetBytes(3 * 16 * 4 * int64(all))
	b.ReportAllocs()
	for epoch := 1; b.Loop(); epoch++ {
		for i := range 16 {
			step(Message{Type: wire.Fetch, From: i / 8, Interval: i % 8, Epoch: epoch})
		}
		for r := range 2 {
			step(Message{Type: wire.Close, From: r, Epoch: epoch, Count: 8})
		}
		for i := range 16 {
			step(Message{Type: wire.FetchStash, From: i / 8, Interval: i % 8, Epoch: epoch})
			for l, r := range layers {
				step(Message{Type: wire.Gradient, From: i / 8, Interval: i % 8, Epoch: epoch, Layer: l, Values: grad[r.Lo:r.Hi]})
			}
		}
	}
}
