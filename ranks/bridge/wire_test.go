package bridge

import (
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/wire"
)

// Damaged and unexpected answers are errors that name the bridge.
func TestDamagedAnswers(t *testing.T) {
	for _, k := range []wire.Kind{0, wire.Begin, wire.Failed, wire.Spent, wire.Spent + 1} {
		if _, err := answerOf(7, k, []byte("{")); fault.KindOf(err) != fault.Runtime || !strings.Contains(err.Error(), "rank 7") {
			t.Errorf("%v: %v", k, err)
		}
	}
}
