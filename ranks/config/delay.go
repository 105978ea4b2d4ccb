package config

import (
	"strconv"
	"strings"
	"time"

	"siafu/internal/fault"
)

// Delay is an injected straggler: ranks pause before a fraction of their gathers.
type Delay struct {
	All    bool
	Rank   int // the delayed rank, unless All is set
	Length time.Duration
	Share  float64 // fraction of gathers
}

// ParseDelay parses RANK:DURATION:SHARE. RANK may be *. Empty text is a Delay of no rank.
func ParseDelay(text string) (Delay, error) {
	if text == "" {
		return Delay{Rank: -1}, nil
	}
	parts := strings.Split(text, ":")
	bad := fault.New(fault.Usage, "train", "", "--delay=%q", text).
		Then("it must be RANK:DURATION:SHARE, such as 1:20ms:0.25, with * for every rank")
	if len(parts) != 3 {
		return Delay{}, bad
	}
	who, err := strconv.Atoi(parts[0])
	length, err2 := time.ParseDuration(parts[1])
	share, err3 := strconv.ParseFloat(parts[2], 64)
	if err != nil && parts[0] != "*" || who < 0 || err2 != nil || length < 0 || err3 != nil || !(share >= 0 && share <= 1) {
		return Delay{}, bad
	}
	return Delay{All: parts[0] == "*", Rank: who, Length: length, Share: share}, nil
}
