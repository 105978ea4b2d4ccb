package kerneltest_test

import (
	"runtime/debug"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// A Guarded passes the conformance suite, and detects accesses that bypass it.
func TestGuarded(t *testing.T) {
	kerneltest.Ops(func(team *kernels.Team) kernels.Ops { return kerneltest.NewGuarded(team) }).All(t)
}

func TestGuardedKeepsOut(t *testing.T) {
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	defer arena.Free()
	g := kerneltest.NewGuarded(team)
	there := kernels.NewMat(g, arena, 3, 5)
	host := kernels.HostMat(3, 5, make([]float32, 15))
	for name, f := range map[string]func(){
		"the host reads":             func() { _ = *(*float32)(there.Address()) },
		"the host writes":            func() { *(*float32)(there.Address()) = 1 },
		"the host asks":              func() { there.Host() },
		"a kernel without the Ops":   func() { team.Add(there, there) },
		"its kernel with host rows":  func() { g.Add(there, host) },
		"an operand of another Ops":  func() { kerneltest.NewGuarded(team).Clear(there) },
		"rows behind the last":       func() { g.Clear(there.Part(2, 4)) },
		"a kernel that reads beyond": func() { kernels.AddRow(make([]float32, 15), there.AsHost().Host()) },
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if recover() == nil {
					t.Error("nothing happens")
				}
			}()
			f()
		})
	}
	g.Add(there, there)
}
