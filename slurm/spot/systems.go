package spot

import (
	"slices"
	"strings"

	"siafu/internal/fault"
)

// Entry is a system by name.
type Entry struct {
	Name, Source string
	New          func() System
}

// Systems returns all systems.
func Systems() []Entry {
	return []Entry{
		{"bamboo", "Bamboo, NSDI'23, §3.5 and §3.7", func() System { return &bamboo{} }},
		{"checkpoint", "Bamboo, §3.3, strawman 1", func() System { return &checkpointing{} }},
		{"dropping", "Bamboo, §3.3, strawman 2", func() System { return &dropping{} }},
		{"migration", "Bamboo, §3.3, strawman 3", func() System { return &migration{} }},
		{"varuna", "Varuna, EuroSys'22", func() System { return &varuna{} }},
		{"oobleck", "Oobleck, SOSP'23", func() System { return &oobleck{} }},
		{"recycle", "ReCycle, SOSP'24", func() System { return &recycle{} }},
		{"parcae", "Parcae, NSDI'24", func() System { return &parcae{} }},
		{"siafu-copies", "copies of parts on other machines", func() System { return &redundantParts{} }},
		{"siafu-restart", "a checkpoint after each epoch", func() System { return &restartParts{} }},
	}
}

// SystemNames returns the names of all systems.
func SystemNames() (names []string) {
	for _, e := range Systems() {
		names = append(names, e.Name)
	}
	return names
}

// Select returns the named systems; all for an empty list. Another name is a fault of kind Usage.
func Select(names []string) (list []Entry, err error) {
	all := Systems()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		k := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
		if k < 0 {
			return nil, fault.New(fault.Usage, op, "", "--systems has %q", name).Then("choose from %s", strings.Join(SystemNames(), ", "))
		}
		list = append(list, all[k])
	}
	return list, nil
}

// Random describes random hourly traces (Hourly).
type Random struct {
	Rate  float64 // probability that a machine is lost in an hour
	Zones int
	Hours float64 // length, if training has no number of samples
	Seed  uint64  // of the first trace
	Runs  int
}

// Repeat simulates a system on random traces and returns the mean of its runs.
func Repeat(in Inputs, e Entry, o Random) Run {
	runs := make([]Run, o.Runs)
	for k := range runs {
		h, source := NewHourly(in.Machines(), o.Zones, o.Rate, o.Seed+uint64(k)), Source{Trace: &Trace{}}
		if in.Samples > 0 {
			source.Extend = h.Extend
		}
		for in.Samples == 0 && source.Trace.Seconds < 3600*o.Hours {
			h.Extend(source.Trace)
		}
		runs[k] = Simulate(in, source, e.New())
	}
	mean := Mean(runs)
	mean.System = e.Name
	return mean
}
