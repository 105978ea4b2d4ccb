package config

import "testing"

// Evaluations returns the number of epochs for which Evaluates is true.
func TestEvaluations(t *testing.T) {
	for every := range 6 {
		for local := range 5 {
			for epochs := range 25 {
				c := Config{TrainingOptions: TrainingOptions{EvalEvery: every, LocalEpochs: local, Epochs: epochs}}
				n := 0
				for e := 1; e <= epochs; e++ {
					if c.Evaluates(e) {
						n++
					}
					if local == 0 && c.Evaluates(e) != (every > 0 && (e-1)%every == 0) {
						t.Fatalf("%+v: epoch %d", c, e)
					}
				}
				if got := c.Evaluations(); got != n {
					t.Fatalf("every %d, rounds of %d, %d epochs: %d evaluations are counted, %d are made", every, local, epochs, got, n)
				}
			}
		}
	}
}
