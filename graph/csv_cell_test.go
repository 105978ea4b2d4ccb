package graph

import "testing"

// TestGuardCell: texts that a spreadsheet would evaluate are guarded, numbers are not, and
// every text comes back.
func TestGuardCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "loyal": "loyal", "a=b": "a=b", "-5": "-5", "-0.25": "-0.25", "+4.7e-05": "+4.7e-05", "-.5": "-.5", "-": "'-",
		`=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`, "+1-2": "'+1-2", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "'=1": "''=1", "'a": "'a", "'-5": "''-5", "-5;=x": "'-5;=x",
	} {
		if got := GuardCell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if back := UnguardCell(GuardCell(text)); back != text {
			t.Errorf("%q comes back as %q", text, back)
		}
	}
	if got := UnguardCell("'-5"); got != "'-5" {
		t.Errorf("an apostrophe before a number becomes %q", got)
	}
}
